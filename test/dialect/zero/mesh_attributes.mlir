// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of a mesh, as the page of the dialect spells them.
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: awk '/^#zero/ {print "zero.parameter @p" NR " : 8xf32 {a = " $0 "}"}' %zero_src/docs/reference/zero.md > %t.mlir
// RUN: zero-opt %t.mlir | FileCheck %s --check-prefix=PAGE
// PAGE: a = #zero.flattened<"dp" = ["edp", "ep"]>
// PAGE: a = #zero.axis<"dp" = 4>
// PAGE: a = #zero.scale<accumulation : -1, dp : -1>

// CHECK: zero.mesh @m<["edp" = 2, "ep" = 2]> flattened ["dp" = ["edp", "ep"], "all" = ["edp"]]
zero.mesh @m <["edp" = 2, "ep" = 2]> flattened ["dp" = ["edp", "ep"], "all" = ["edp"]]
// CHECK: {axis = #zero.axis<"dp" = 4>, flattened = #zero.flattened<"dp" = ["edp", "ep"]>}
zero.parameter @w : 8xf32 {axis = #zero.axis<"dp" = 4>, flattened = #zero.flattened<"dp" = ["edp", "ep"]>}
