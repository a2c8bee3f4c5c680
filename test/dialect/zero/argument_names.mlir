// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: zero-opt %s --mlir-print-op-generic | zero-opt | FileCheck %s
//
// Names of arguments, for callers. One argument has none.

zero.mesh @cluster <["dp" = 2]>

// CHECK: zero.step @train on @cluster normalize(tokens : -1) (%{{.*}}: !zero.value<f64> {zero.name = "lr"}, %{{.*}}: !zero.value<f64>, %{{.*}}: !zero.value<f64, partial = [dp]> {zero.name = "gr\C3\B6\C3\9Fe \22", zero.tokens}) {
zero.step @train on @cluster normalize(tokens : -1) (%lr: !zero.value<f64> {zero.name = "lr"}, %wd: !zero.value<f64>, %n: !zero.value<f64, partial = [dp]> {zero.tokens, zero.name = "größe \22"}) {
  zero.return []
}
