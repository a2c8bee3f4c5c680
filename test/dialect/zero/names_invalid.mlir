// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Names that are empty.

// expected-error@+1 {{attribute 'sym_name' failed to satisfy constraint: string attribute of at least one character}}
zero.parameter @"" : 8xf32

// -----

zero.parameter @w : 8xf32
// expected-error@+1 {{attribute 'sym_name' failed to satisfy constraint: string attribute of at least one character}}
zero.group @"" [@w]

// -----

zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{attribute 'sym_name' failed to satisfy constraint: string attribute of at least one character}}
zero.step @"" on @m normalize() () {
  zero.return []
}
