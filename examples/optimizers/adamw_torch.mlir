// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// AdamW with the operations of the fused kernel for CPUs of PyTorch 2.15, and so with its
// bits. The kernel is the same for AVX2 and AVX-512. PyTorch's compiler makes one fused
// multiply-add of v * beta2 + (g * (1 - beta2)) * g: the second product is not rounded.
// In a tail of fewer elements than a vector it makes another one, in which the first
// product is not rounded; the bits of a tail therefore may differ.
zero.optimizer @adamw_torch hyper [lr, wd, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8] counters [beta1_t = 1.0, beta2_t = 1.0] state [m, v] {
^prepare(%lr: f64, %wd: f64, %beta1: f64, %beta2: f64, %eps: f64, %b1t: f64, %b2t: f64):
  %one = arith.constant 1.0 : f64
  %b1n = arith.mulf %b1t, %beta1 : f64
  %b2n = arith.mulf %b2t, %beta2 : f64
  %c1 = arith.subf %one, %b1n : f64
  %c2 = arith.subf %one, %b2n : f64
  %root = math.sqrt %c2 : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  %ob1 = arith.subf %one, %beta1 : f64
  %ob2 = arith.subf %one, %beta2 : f64
  zero.yield %b1n, %b2n, %keep, %step, %ob1, %beta2, %ob2, %root, %eps : f64, f64, f64, f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %keep: f32, %step: f32, %ob1: f32, %beta2: f32, %ob2: f32, %root: f32, %eps: f32):
  // torch.lerp begins at the nearer end.
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %is_near_m = arith.cmpf olt, %ob1, %half : f32
  %from_g = arith.subf %ob1, %one : f32
  %weight = arith.select %is_near_m, %ob1, %from_g : f32
  %end = arith.select %is_near_m, %m, %g : f32
  %way = arith.subf %g, %m : f32
  %m1 = math.fma %weight, %way, %end : f32
  %g0 = arith.mulf %ob2, %g : f32
  %v0 = arith.mulf %v, %beta2 : f32
  %v1 = math.fma %g0, %g, %v0 : f32
  %r = math.sqrt %v1 : f32
  %r0 = arith.divf %r, %root : f32
  %d = arith.addf %r0, %eps : f32
  %p0 = arith.mulf %p, %keep : f32
  %s = arith.mulf %step, %m1 : f32
  %q = arith.divf %s, %d : f32
  %p1 = arith.addf %p0, %q : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}
