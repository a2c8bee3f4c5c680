// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two steps of one module, with a unit each: frozen parameters are laid out once.
//
// RUN: zero-opt %s --zero-lower="stage=3 until=lowered" | FileCheck %s
// CHECK: zero.frozen_bucket @f0 : {{.*}} [@base0]
// CHECK: zero.frozen_bucket @f1 : {{.*}} [@base1]
// CHECK-NOT: zero.frozen_bucket
// CHECK: zrt.program @a
// CHECK: zrt.program @b

zero.mesh @m <["dp" = 2]>
zero.parameter @base0 : 6x3xbf16 frozen
zero.parameter @adapter0 : 6xf32
zero.parameter @base1 : 7x3xbf16 frozen
zero.parameter @adapter1 : 6xf32
zero.unit @layer0 [@base0, @adapter0]
zero.unit @layer1 [@base1, @adapter1]
zero.group @g0 [@adapter0]
zero.group @g1 [@adapter1]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
!piece = !zero.value<6xf32, partial = [dp, micro], scaled = [dp : 1]>
!sum = !zero.value<6xf32, partial = [dp], scaled = [dp : 1]>
!mean = !zero.value<6xf32>
zero.step @a on @m normalize(dp : -1) (%lr: !zero.value<f64>) {
  %g:1 = zero.micro_batches in f32 {
    %d:1 = zero.backward(@adapter0) prescaled() : !piece
    zero.yield %d#0 : !piece
  }
  %r:1 = zero.reduce %g#0 : !sum
  zero.update @g0 with @sgd(%r#0) hyper(lr = %lr) : (!mean), (!zero.value<f64>)
  zero.return []
}
zero.step @b on @m normalize(dp : -1) (%lr: !zero.value<f64>) {
  %g:1 = zero.micro_batches in f32 {
    %d:1 = zero.backward(@adapter1) prescaled() : !piece
    zero.yield %d#0 : !piece
  }
  %r:1 = zero.reduce %g#0 : !sum
  zero.update @g1 with @sgd(%r#0) hyper(lr = %lr) : (!mean), (!zero.value<f64>)
  zero.return []
}
