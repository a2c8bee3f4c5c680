// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warm-up over 100 steps, then a straight line to 0 at step 1000. `step` is the number
// of this step, from 1; one that is skipped does not count.

zero.schedule @lr counters [step = 1.0] value {
^value(%step: f64):
  %peak = arith.constant 3.0e-4 : f64
  %warmup = arith.constant 100.0 : f64
  %total = arith.constant 1000.0 : f64
  %zero = arith.constant 0.0 : f64

  %rise = arith.divf %step, %warmup : f64
  %left = arith.subf %total, %step : f64
  %length = arith.subf %total, %warmup : f64
  %fall = arith.divf %left, %length : f64
  %lower = arith.minimumf %rise, %fall : f64
  %share = arith.maximumf %lower, %zero : f64
  %lr = arith.mulf %peak, %share : f64
  zero.yield %lr : f64
} next {
^next(%skipped: i1, %step: f64):
  %one = arith.constant 1.0 : f64
  %more = arith.addf %step, %one : f64
  %next = arith.select %skipped, %step, %more : f64
  zero.yield %next : f64
}
