// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// A round trip of a step that is weighted by tokens.

zero.mesh @cluster <["dp" = 2]>

// CHECK: zero.step @train on @cluster normalize(tokens : -1) (%[[LR:.*]]: !zero.value<f64>, %[[N:.*]]: !zero.value<f64, partial = [dp]> {zero.tokens}) {
zero.step @train on @cluster normalize(tokens : -1) (%lr: !zero.value<f64>, %n: !zero.value<f64, partial = [dp]> {zero.tokens}) {
  %sum = zero.all_reduce %n over [dp] : !zero.value<f64, partial = [dp]>
  // CHECK: zero.factor (tokens : -1) tokens %{{.*}} : !zero.value<f64>
  %t = zero.factor (tokens : -1) tokens %sum : !zero.value<f64>
  // CHECK: zero.factor (dp : -1){{$}}
  %f = zero.factor (dp : -1)
  // CHECK: zero.outcome(%[[LR]]) missing %[[LR]] backwards %[[LR]] squared %[[LR]] tokens %{{.*}} ranks 2 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %v = zero.outcome(%lr) missing %lr backwards %lr squared %lr tokens %sum ranks 2 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  // Ranks that may make different numbers of backward passes do not compare them.
  // CHECK: zero.outcome(%[[LR]]) missing %[[LR]] tokens %{{.*}} ranks 2 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %u = zero.outcome (%lr) missing %lr tokens %sum ranks 2 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  zero.return []
}
