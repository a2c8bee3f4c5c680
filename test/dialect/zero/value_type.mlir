// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// Every form of the value type survives a round trip, in one canonical order.

zero.mesh @cluster <["dp" = 2]>

// CHECK: !zero.value<f64>
zero.step @scalar on @cluster normalize() (%a: !zero.value<f64>) {
  zero.return [a] %a : !zero.value<f64>
}

// CHECK: !zero.value<f64, partial = [dp, micro], scaled = [dp : -2, loss_scale : 1]>
zero.step @partial on @cluster normalize() (%a: !zero.value<f64, scaled = [dp : -2, loss_scale : 1], partial = [micro, dp]>) {
  zero.return []
}

// CHECK: !zero.value<f64, varying = [dp], reduced = [ep], on = [pp : 0, pp : 3]>
zero.step @others on @cluster normalize() (%a: !zero.value<f64, on = [pp : 3, pp : 0], varying = [dp], reduced = [ep]>) {
  zero.return []
}

// CHECK: !zero.value<f64, partial_max = [a], partial_min = [b], partial_or = [c]>
zero.step @reductions on @cluster normalize() (%a: !zero.value<f64, partial_or = [c], partial_max = [a], partial_min = [b]>) {
  zero.return []
}
