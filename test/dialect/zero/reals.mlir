// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | FileCheck %s
// RUN: zero-opt %s -o %t.once
// RUN: zero-opt %t.once | diff %t.once -
//
// Real numbers may be negative, whole, and the bits of an f64. What is printed is read.

zero.mesh @m <["dp" = 4]>
zero.parameter @w : 8xf32
zero.group @g [@w]
// CHECK: hyper [lr, wd = -1.000000e+00, mu = -5.000000e-01, x = 1.000000e-01] counters [t = -1.000000e+00]
zero.optimizer @sgd hyper [lr, wd = -1, mu = -0.5, x = 0x3FB999999999999A] counters [t = -1.0] {
^prepare(%lr: f64, %wd: f64, %mu: f64, %x: f64, %t: f64):
  %step = arith.negf %lr : f64
  zero.yield %t, %step : f64, f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.step @s on @m normalize(dp : -1) (%lr: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %0 = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %0 : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>
  // CHECK: hyper(lr = %{{.*}}, mu = -2.000000e+00, wd = -1.000000e-01, x = 1.000000e+00)
  zero.update @g with @sgd(%r) hyper(lr = %lr, wd = - 0.1, mu = -2, x = 1) : (!zero.value<8xf32>), (!zero.value<f64>)
  zero.return []
}
