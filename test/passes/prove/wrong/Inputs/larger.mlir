// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD with momentum, that doubles updates of weights that are larger than their momentum.
zero.optimizer @larger hyper [lr, wd = 0.0, momentum = 0.9] state [momentum_buffer] {
^prepare(%lr: f64, %wd: f64, %momentum: f64):
  %step = arith.negf %lr : f64
  %twice = arith.addf %step, %step : f64
  zero.yield %step, %twice, %momentum : f64, f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %twice: f32, %momentum: f32):
  %b1 = math.fma %b, %momentum, %g : f32
  %larger = arith.cmpf ogt, %p, %b : f32
  %by = arith.select %larger, %twice, %step : f32
  %p1 = math.fma %b1, %by, %p : f32
  zero.yield %p1, %b1 : f32, f32
}
