// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %S/../Inputs/collectives.mlir --zero-place-accumulators | FileCheck %s
// RUN: zero-opt %s --zero-place-accumulators | FileCheck %s --check-prefix=STAYS
//
// The reduction moves into the loop: each backward pass is reduced, and the sum over
// backward passes is a slice. Gradients travel in the type in which they arrived, if each
// arrives in one piece.
//
// CHECK: %[[G:.*]] = zero.micro_batches in f32
// CHECK: %[[D:.*]] = zero.backward(@b0)
// CHECK: %[[R:.*]] = zero.reduce_scatter %[[D]] over [dp] reduce_dtype bf16 : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
// CHECK: zero.yield %[[R]] : !zero.value<128xf32, sharded = [dp], partial = [micro], scaled = [dp : 1]>
// CHECK-NOT: zero.reduce_scatter
// CHECK: zero.sum_squares %[[G]] : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
//
// RUN: sed '/^ *zero.parameter/s/$/ uses 2/' %S/../Inputs/collectives.mlir | zero-opt --zero-place-accumulators | FileCheck %s --check-prefix=PIECES
// RUN: sed 's/arrives bf16/arrives f32/' %S/../Inputs/collectives.mlir | zero-opt --zero-place-accumulators | FileCheck %s --check-prefix=PIECES
// PIECES: zero.micro_batches
// PIECES: zero.reduce_scatter
// PIECES-NOT: reduce_dtype
//
// At stage 1 this is so for a step of one backward pass, and for no other.
//
// RUN: sed '/zero.step/s/ (%/ one_backward (%/' %S/../Inputs/collectives.mlir | zero-opt --zero-place-accumulators=stage=1 | FileCheck %s
// RUN: zero-opt %S/../Inputs/collectives.mlir --zero-place-accumulators=stage=1 | FileCheck %s --check-prefix=AFTER
// AFTER: zero.micro_batches
// AFTER: zero.yield {{.*}} : !zero.value<128xf32, partial = [dp, micro]
// AFTER: zero.reduce_scatter
//
// Where the sum is apart, the op says so. A step of one backward pass has no sum.
//
// RUN: zero-opt %S/../Inputs/collectives.mlir --zero-place-accumulators="stage=1 apart" | FileCheck %s --check-prefix=APART
// APART: zero.micro_batches in f32 apart {
// APART: zero.yield {{.*}} : !zero.value<128xf32, partial = [dp, micro]
// APART: zero.reduce_scatter
// RUN: sed '/zero.step/s/ (%/ one_backward (%/' %S/../Inputs/collectives.mlir | not zero-opt --zero-place-accumulators="stage=1 apart" 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: error: is one_backward, so it has no accumulator; leave 'accumulate=apart' out
//
// RUN: not zero-opt %S/../Inputs/collectives.mlir --zero-place-accumulators="stage=2 apart" 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: keeps gradients as they arrive at stage 2 in any case; leave 'accumulate=apart' out
//
// An all_reduce stays where it is: stage 0 has no slices.
// STAYS: zero.micro_batches
// STAYS: zero.yield
// STAYS: zero.all_reduce

zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g over [dp] : !zero.value<64xf32, partial = [dp]>
  %p = zero.update_bucket @b0 with @sgd(%r) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b0, %p : !zero.value<64xf32>
  zero.return []
}
