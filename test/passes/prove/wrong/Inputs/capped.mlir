// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loss scale that grows up to 2^17.
zero.loss_scale @loss_scale counters [scale = 65536.0] {
^update(%overflow: i1, %scale: f64):
  %two = arith.constant 2.0 : f64
  %half = arith.constant 0.5 : f64
  %most = arith.constant 131072.0 : f64
  %isMost = arith.cmpf oge, %scale, %most : f64
  %more = arith.mulf %scale, %two : f64
  %grown = arith.select %isMost, %scale, %more : f64
  %less = arith.mulf %scale, %half : f64
  %scale1 = arith.select %overflow, %less, %grown : f64
  zero.yield %scale1 : f64
}
