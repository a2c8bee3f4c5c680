// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --allow-unregistered-dialect | zero-opt --allow-unregistered-dialect | FileCheck %s
// RUN: zero-opt %s --mlir-print-op-generic --allow-unregistered-dialect | zero-opt --allow-unregistered-dialect | FileCheck %s
//
// Addends that travel as another type than they are summed in.

// CHECK: zero.step @train
zero.mesh @m <["dp" = 2]>
zero.step @train on @m normalize(dp : -1) () {
  // CHECK: zero.reduce %{{.*}} reduce_dtype bf16 : !zero.value<8xf32, partial = [dp]>
  %g = "test.gradient"() : () -> !zero.value<8xf32, partial = [dp]>
  %r = zero.reduce %g reduce_dtype bf16 : !zero.value<8xf32, partial = [dp]>
  // CHECK: zero.reduce_scatter %{{.*}} over [dp] reduce_dtype f16 : !zero.value<8xf32, partial = [dp]>
  %s = zero.reduce_scatter %g over [dp] reduce_dtype f16 : !zero.value<8xf32, partial = [dp]>
  // CHECK: zero.all_reduce %{{.*}} over [dp] reduce_dtype f32 : !zero.value<8xf64, partial = [dp]>
  %h = "test.gradient"() : () -> !zero.value<8xf64, partial = [dp]>
  %a = zero.all_reduce %h over [dp] reduce_dtype f32 : !zero.value<8xf64, partial = [dp]>
  zero.return []
}
