// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD with momentum and L2 decay (torch.optim.SGD, dampening 0). PyTorch starts
// the momentum buffer with the first gradient; zero state does the same.
zero.optimizer @sgd hyper [lr, momentum = 0.9, wd = 0.0] state [momentum_buffer] {
^prepare(%lr: f64, %momentum: f64, %wd: f64):
  %step = arith.negf %lr : f64
  zero.yield %step, %momentum, %wd : f64, f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %momentum: f32, %wd: f32):
  %gd = math.fma %p, %wd, %g : f32
  %b1 = math.fma %b, %momentum, %gd : f32
  %p1 = math.fma %b1, %step, %p : f32
  zero.yield %p1, %b1 : f32, f32
}
