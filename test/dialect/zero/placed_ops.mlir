// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// The space changes, and linear ops keep it. The device is not spelled.
//
// CHECK: %[[H:.*]] = zero.transfer %{{.*}} to host : !zero.value<64xf32>
// CHECK: %[[U:.*]] = zero.scale %[[H]] by %{{.*}} : !zero.value<64xf32, space = host> by !zero.value<f64>
// CHECK: %[[P:.*]] = zero.update_bucket @b0 with @sgd(%[[U]])
// CHECK: %[[D:.*]] = zero.transfer %[[P]] to device : !zero.value<64xf32, space = host>
// CHECK: zero.constant 5.000000e-01
// CHECK: zero.assign @b0, %[[D]] : !zero.value<64xf32>

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
  %h = zero.transfer %r to host : !zero.value<64xf32, space = device>
  %u = zero.scale %h by %v : !zero.value<64xf32, space = host> by !zero.value<f64>
  %p = zero.update_bucket @b0 with @sgd(%u) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32, space = host>, !zero.value<f64>, (!zero.value<f64>)
  %d = zero.transfer %p to device : !zero.value<64xf32, space = host>
  %c = zero.constant 0.5
  zero.assign @b0, %d : !zero.value<64xf32>
  zero.return []
}
