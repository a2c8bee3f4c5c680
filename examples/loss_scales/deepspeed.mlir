// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule of DeepSpeed's dynamic loss scale with its defaults (initial_scale_power 16,
// loss_scale_window 1000, hysteresis 2, min_loss_scale 1): twice as much where the steps
// since the last one that was skipped, the first not counted, are a multiple of the
// window; half as much after a skipped step, but not below the minimum, and not while
// hysteresis is left, of which each takes one. It is refilled when the scale grows.

zero.loss_scale @loss_scale counters [scale = 65536.0, clean = 0.0, hysteresis = 2.0] {
^update(%overflow: i1, %scale: f64, %clean: f64, %hysteresis: f64):
  %factor = arith.constant 2.0 : f64
  %window = arith.constant 1000.0 : f64
  %full = arith.constant 2.0 : f64
  %minimum = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64

  // Clean steps before this one, counted from 1 again when a window is full.
  %isDue = arith.cmpf oeq, %clean, %window : f64
  %more = arith.mulf %scale, %factor : f64
  %grown = arith.select %isDue, %more, %scale : f64
  %refilled = arith.select %isDue, %full, %hysteresis : f64
  %next = arith.addf %clean, %one : f64
  %counted = arith.select %isDue, %one, %next : f64

  %isLast = arith.cmpf oeq, %hysteresis, %one : f64
  %quotient = arith.divf %scale, %factor : f64
  %less = arith.maximumf %quotient, %minimum : f64
  %shrunk = arith.select %isLast, %less, %scale : f64
  %fewer = arith.subf %hysteresis, %one : f64
  %left = arith.select %isLast, %hysteresis, %fewer : f64

  %scale1 = arith.select %overflow, %shrunk, %grown : f64
  %clean1 = arith.select %overflow, %zero, %counted : f64
  %hysteresis1 = arith.select %overflow, %left, %refilled : f64
  zero.yield %scale1, %clean1, %hysteresis1 : f64, f64, f64
}
