// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loss scale that stays what it is.

zero.loss_scale @loss_scale counters [scale = 1024.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
