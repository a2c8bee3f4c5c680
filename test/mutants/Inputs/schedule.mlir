// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rate that few steps tell apart, and that goes on by less where one is skipped.

zero.schedule @lr counters [step = 1.0, rest = 8.0] value {
^value(%step: f64, %rest: f64):
  %warmup = arith.constant 4.0 : f64
  %rise = arith.divf %step, %warmup : f64
  %lower = arith.minimumf %rise, %rest : f64
  zero.yield %lower : f64
} next {
^next(%skipped: i1, %step: f64, %rest: f64):
  %one = arith.constant 1.0 : f64
  %half = arith.constant 0.5 : f64
  %part = arith.select %skipped, %half, %one : f64
  %more = arith.addf %step, %part : f64
  %less = arith.mulf %rest, %half : f64
  zero.yield %more, %less : f64, f64
}
