// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain SGD with two thresholds of a counter, one of them in f32.
zero.optimizer @warm hyper [lr, wd = 0.0] counters [t = 0.0] {
^prepare(%lr: f64, %wd: f64, %t: f64):
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %three = arith.constant 3.0 : f64
  %total = arith.constant 49.0 : f64
  %tn = arith.addf %t, %one : f64
  %isCold = arith.cmpf oge, %total, %tn : f64
  %rate = arith.select %isCold, %zero, %lr : f64
  %step = arith.negf %rate : f64
  zero.yield %tn, %step, %tn : f64, f64, f64
} update {
^update(%g: f32, %p: f32, %step: f32, %t: f32):
  %ten = arith.constant 10.0 : f32
  %one = arith.constant 1.0 : f32
  %part = arith.divf %t, %ten : f32
  %isDue = arith.cmpf oge, %part, %one : f32
  %p1 = math.fma %g, %step, %p : f32
  %p2 = arith.select %isDue, %p1, %p : f32
  zero.yield %p2 : f32
}
