// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: not zero-opt %S/../Inputs/laid_out.mlir --zero-insert-collectives=stage=4 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not zero-opt %s --zero-insert-collectives 2>&1 | FileCheck %s
//
// STAGE: stage must be 0, 1, 2 or 3, got 4
//
// A step that was never laid out is refused.
// CHECK: of a reduced gradient is not laid out; run zero-assign-layout first

zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}
