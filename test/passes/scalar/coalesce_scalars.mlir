// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %S/../Inputs/collectives.mlir --zero-coalesce-scalars | FileCheck %s
// RUN: zero-opt %s --zero-coalesce-scalars | FileCheck %s --check-prefix=LEVELS
//
// Four all-reduces become one, and each scalar keeps its scale.
//
// CHECK: %[[R:.*]] = zero.reduce_scatter
// CHECK: %[[Q:.*]] = zero.sum_squares %[[R]]
// CHECK: %[[A:.*]], %[[A2:.*]], %[[M:.*]] = zero.arrival_count
// CHECK: %[[V:.*]] = zero.stack %[[Q]], %[[A]], %[[A2]], %[[M]]
// CHECK: %[[S:.*]] = zero.all_reduce %[[V]] over [dp] : !zero.value<4xf64, partial = [dp]>
// CHECK: %[[U:.*]]:4 = zero.unstack %[[S]] [#zero.scale<dp : 2>, #zero.scale<>, #zero.scale<>, #zero.scale<>]
// CHECK-NOT: zero.all_reduce
// CHECK: zero.outcome(%[[U]]#0) missing %[[U]]#3 backwards %[[U]]#1 squared %[[U]]#2
// CHECK: zero.sqrt %[[U]]#0
//
// A sum that depends on another one cannot travel with it.
// LEVELS: zero.stack %arg0, %arg1 :
// LEVELS: zero.all_reduce
// LEVELS: zero.arrival_count
// LEVELS: zero.scale
// LEVELS: zero.all_reduce
// LEVELS-NOT: zero.all_reduce

zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>, %b: !zero.value<f64, partial = [dp]>) {
  %ra = zero.all_reduce %a over [dp] : !zero.value<f64, partial = [dp]>
  %rb = zero.all_reduce %b over [dp] : !zero.value<f64, partial = [dp]>
  %s = zero.add %ra, %rb : !zero.value<f64>, !zero.value<f64>
  %n, %n2, %m = zero.arrival_count over [dp]
  %t = zero.scale %n by %s : !zero.value<f64, partial = [dp]> by !zero.value<f64>
  %rt = zero.all_reduce %t over [dp] : !zero.value<f64, partial = [dp]>
  zero.return [t] %rt : !zero.value<f64>
}
