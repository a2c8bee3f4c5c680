// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule of examples/loss_scales/torch.mlir with numbers that few steps tell apart.

zero.loss_scale @loss_scale counters [scale = 16.0, clean = 0.0] {
^update(%overflow: i1, %scale: f64, %clean: f64):
  %growth = arith.constant 8.0 : f64
  %backoff = arith.constant 0.5 : f64
  %interval = arith.constant 2.0 : f64
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64

  %next = arith.addf %clean, %one : f64
  %isDue = arith.cmpf oeq, %next, %interval : f64
  %more = arith.mulf %scale, %growth : f64
  %grown = arith.select %isDue, %more, %scale : f64
  %counted = arith.select %isDue, %zero, %next : f64

  %less = arith.mulf %scale, %backoff : f64
  %scale1 = arith.select %overflow, %less, %grown : f64
  %clean1 = arith.select %overflow, %zero, %counted : f64
  zero.yield %scale1, %clean1 : f64, f64
}
