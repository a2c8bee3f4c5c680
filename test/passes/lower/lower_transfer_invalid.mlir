// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: not zero-opt %s --zero-lower-to-zrt 2>&1 | FileCheck %s
//
// A product is no buffer: what is moved is the gradient as it was reduced.
//
// CHECK: error: operand is neither the gradient of a bucket nor its update; multiply by scalars after the transfer

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
  %u = zero.scale %r by %v : !zero.value<64xf32> by !zero.value<f64>
  %h = zero.transfer %u to host : !zero.value<64xf32>
  %p = zero.update_bucket @b0 with @sgd(%h) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32, space = host>, !zero.value<f64>, (!zero.value<f64>)
  %d = zero.transfer %p to device : !zero.value<64xf32, space = host>
  zero.assign @b0, %d : !zero.value<64xf32>
  zero.return []
}
