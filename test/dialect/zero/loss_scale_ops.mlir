// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// A round trip of a loss scale and of what reads it.

zero.mesh @cluster <["dp" = 2]>

// CHECK: zero.loss_scale @scale counters [scale = 1.024000e+03] {
// CHECK-NEXT: ^bb0(%{{.*}}: i1, %[[OLD:.*]]: f64):
zero.loss_scale @scale counters [scale = 1024.0] {
^update(%overflow: i1, %scale: f64):
  %half = arith.constant 0.5 : f64
  %less = arith.mulf %scale, %half : f64
  %next = arith.select %overflow, %less, %scale : f64
  zero.yield %next : f64
}

zero.step @train on @cluster weight() (%v: !zero.value<f64>) {
  // CHECK: %[[S:.*]] = zero.read_scale @scale
  %s = zero.read_scale @scale
  // CHECK: zero.factor (@scale : -1) loss_scale %[[S]] : !zero.value<f64>
  %u = zero.factor (@scale : -1) loss_scale %s : !zero.value<f64>
  // CHECK: zero.update_scale %[[S]] when %{{.*}} : !zero.value<f64>, !zero.value<f64>
  zero.update_scale %s when %v : !zero.value<f64>, !zero.value<f64>
  zero.return []
}
