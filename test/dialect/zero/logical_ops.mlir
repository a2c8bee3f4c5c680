// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %zero_src/examples/quickstart.mlir | zero-opt | FileCheck %s
//
// The step of the README survives a round trip, and its types are inferred.

// CHECK: zero.mesh @cluster<["dp" = 4]>
// CHECK: zero.parameter @fc1.weight : 64x48xbf16
// CHECK: zero.parameter @fc2.bias : 10xbf16 optional
// CHECK: zero.group @decay [@fc1.weight, @fc2.weight]
// CHECK: zero.optimizer @adamw hyper [lr, wd, beta1 = 9.000000e-01
// CHECK-SAME: counters [beta1_t = 1.000000e+00, beta2_t = 1.000000e+00] state [m, v]
// CHECK: zero.step @train on @cluster normalize(accumulation : -1, dp : -1)
// CHECK: %[[G:.*]]:4 = zero.micro_batches in f32
// CHECK: zero.backward(@fc1.weight, @fc1.bias, @fc2.weight, @fc2.bias) prescaled (accumulation : -1)
// CHECK: %[[R:.*]]:4 = zero.reduce %[[G]]#0
// CHECK-SAME: !zero.value<64x48xf32, partial = [dp], scaled = [dp : 1]>
// CHECK: %[[N:.*]] = zero.norm %[[R]]#0
// CHECK: %[[C:.*]]:4 = zero.clip %[[R]]#0
// CHECK-SAME: by %[[N]] max 1.000000e+00
// CHECK: zero.update @decay with @adamw(%[[C]]#0, %[[C]]#2) hyper(lr = %{{.*}}, wd = 1.000000e-01)
// CHECK: zero.return [norm] %[[N]]
