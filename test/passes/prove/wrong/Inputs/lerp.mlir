// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD with an average of gradients, b + (g - b) * (1 - lr wd). The rate is an argument.
zero.optimizer @lerp hyper [lr, wd] state [momentum_buffer] {
^prepare(%lr: f64, %wd: f64):
  %step = arith.negf %lr : f64
  %one = arith.constant 1.0 : f64
  %kept = arith.mulf %lr, %wd : f64
  %weight = arith.subf %one, %kept : f64
  zero.yield %step, %weight : f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %weight: f32):
  %d = arith.subf %g, %b : f32
  %b1 = math.fma %d, %weight, %b : f32
  %p1 = math.fma %b1, %step, %p : f32
  zero.yield %p1, %b1 : f32, f32
}
