// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --zero-set-mesh=mesh=dp=8 | FileCheck %s
// RUN: not zero-opt %s --zero-set-mesh=mesh=tp=8 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not zero-opt %s --zero-set-mesh=mesh=dp=none 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not zero-opt %s --zero-set-mesh=mesh=dp=0 2>&1 | FileCheck %s --check-prefix=ZERO
//
// RUN: not zero-opt %s --zero-set-mesh=mesh=dp=2:dp=4 2>&1 | FileCheck %s --check-prefix=TWICE
//
// TWICE: axis 'dp' is given two sizes, got 'dp=2:dp=4'
//
// One size changes, the others stay.
//
// CHECK: zero.mesh @m<["pp" = 2, "dp" = 8]>
// UNKNOWN: mesh has no axis 'tp'
// UNKNOWN: note: its axes are declared here: pp, dp
// NUMBER: expected an axis and its size of at least 1, such as dp=4 (several are separated by ':'), got 'dp=none'
// ZERO: expected an axis and its size of at least 1, such as dp=4 (several are separated by ':'), got 'dp=0'

zero.mesh @m <["pp" = 2, "dp" = 1]>
