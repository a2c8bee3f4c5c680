// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lion (Chen et al., 2023): the sign of an interpolated momentum, with decoupled
// decay. The sign of zero is zero.
zero.optimizer @lion hyper [lr, wd = 0.0, beta1 = 0.9, beta2 = 0.99] state [m] {
^prepare(%lr: f64, %wd: f64, %beta1: f64, %beta2: f64):
  %one = arith.constant 1.0 : f64
  %step = arith.negf %lr : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  %ob1 = arith.subf %one, %beta1 : f64
  %ob2 = arith.subf %one, %beta2 : f64
  zero.yield %step, %keep, %beta1, %ob1, %beta2, %ob2 : f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %step: f32, %keep: f32, %beta1: f32, %ob1: f32, %beta2: f32, %ob2: f32):
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.mulf %m, %beta1 : f32
  %c = math.fma %g, %ob1, %c0 : f32
  %unit = math.copysign %one, %c : f32
  %is_zero = arith.cmpf oeq, %c, %zero : f32
  %sign = arith.select %is_zero, %zero, %unit : f32
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %sign, %step, %p0 : f32
  %m0 = arith.mulf %m, %beta2 : f32
  %m1 = math.fma %g, %ob2, %m0 : f32
  zero.yield %p1, %m1 : f32, f32
}
