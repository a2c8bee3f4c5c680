// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adamax (Kingma and Ba, 2015, section 7.1), as torch.optim.Adamax: the largest
// gradient of late takes the place of Adam's second moment. An optimizer of one's own,
// for --recipe=examples/adamax.mlir,... and zero_opt.torch.Optimizer.
zero.optimizer @adamax hyper [lr, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, wd = 0.0] counters [beta1_t = 1.0] state [m, u] {
^prepare(%lr: f64, %beta1: f64, %beta2: f64, %eps: f64, %wd: f64, %beta1_t: f64):
  %one = arith.constant 1.0 : f64
  %beta1_t1 = arith.mulf %beta1_t, %beta1 : f64
  %correction = arith.subf %one, %beta1_t1 : f64
  %rate = arith.divf %lr, %correction : f64
  %step = arith.negf %rate : f64
  %ob1 = arith.subf %one, %beta1 : f64
  zero.yield %beta1_t1, %step, %beta1, %ob1, %beta2, %eps, %wd : f64, f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %u: f32, %step: f32, %beta1: f32, %ob1: f32, %beta2: f32, %eps: f32, %wd: f32):
  %decayed = math.fma %p, %wd, %g : f32
  %m0 = arith.mulf %m, %beta1 : f32
  %m1 = math.fma %decayed, %ob1, %m0 : f32
  %size = math.absf %decayed : f32
  %size1 = arith.addf %size, %eps : f32
  %u0 = arith.mulf %u, %beta2 : f32
  %u1 = arith.maximumf %u0, %size1 : f32
  %ratio = arith.divf %m1, %u1 : f32
  %p1 = math.fma %ratio, %step, %p : f32
  zero.yield %p1, %m1, %u1 : f32, f32, f32
}
