// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: sed -e 's/HOW//' %s | zero-opt --zero-lower=until=lowered | FileCheck %s --check-prefix=SKIP
// RUN: sed -e 's/HOW/nonfinite error/' %s | zero-opt --zero-lower=until=sharded | FileCheck %s --check-prefix=SHARDED
// RUN: sed -e 's/HOW/nonfinite error/' %s | zero-opt --zero-lower=until=lowered | FileCheck %s --check-prefix=ERROR
// RUN: sed -e 's/HOW/nonfinite apply/' %s | zero-opt --zero-lower=until=lowered | FileCheck %s --check-prefix=POISON
// RUN: sed -e 's/HOW/nonfinite panic/' %s | not zero-opt 2>&1 | FileCheck %s --check-prefix=UNKNOWN
//
// What a sum of squares that is not finite makes of the outcome.
//
// SKIP: %[[BAD:.*]] = arith.cmpf une
// SKIP-NEXT: %[[ONE:.*]] = arith.constant 1.000000e+00 : f64
// SKIP-NEXT: arith.select %[[BAD]], %[[ONE]]
// SHARDED: zero.outcome{{.*}} ranks 2 nonfinite error :
// ERROR: %[[BAD:.*]] = arith.cmpf une
// ERROR-NEXT: %[[FOUR:.*]] = arith.constant 4.000000e+00 : f64
// ERROR-NEXT: arith.select %[[BAD]], %[[FOUR]]
// Where it makes nothing of it there is none.
//
// POISON-NOT: sum_squares
// POISON: arith.cmpf une
// POISON-NEXT: arith.constant 2.000000e+00 : f64
// POISON-NOT: sum_squares
// UNKNOWN: expected skip, apply or error, got 'panic'

zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() HOW (%lr: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  zero.update @all with @sgd(%r) hyper(lr = %lr) : (!zero.value<8xf32>), (!zero.value<f64>)
  zero.return []
}
