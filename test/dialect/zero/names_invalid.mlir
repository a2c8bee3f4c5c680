// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Names that are empty, and names with a type, which are other names with the same text.

// expected-error@+1 {{attribute 'sym_name' failed to satisfy constraint: string attribute of at least one character without a type}}
zero.parameter @"" : 8xf32

// -----

zero.parameter @w : 8xf32
// expected-error@+1 {{attribute 'sym_name' failed to satisfy constraint: string attribute of at least one character without a type}}
zero.group @"" [@w]

// -----

zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{attribute 'sym_name' failed to satisfy constraint: string attribute of at least one character without a type}}
zero.step @"" on @m normalize() () {
  zero.return []
}

// -----

// expected-error@+1 {{attribute 'sym_name' failed to satisfy constraint: string attribute of at least one character without a type}}
"zero.parameter"() <{sym_name = "w" : i32, type = !zero.value<8xf32>}> : () -> ()

// -----

zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.transition idle on apply to idle run []
  // expected-error@+1 {{attribute 'state' failed to satisfy constraint: string attribute without a type}}
  "zrt.transition"() <{state = "idle" : i32, event = #zrt<event apply>, next = "idle", handlers = []}> : () -> ()
}

// -----

zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{attribute 'result_names' failed to satisfy constraint: array of names}}
"zrt.program"() <{sym_name = "p", mesh = @m, inputs = [], results = [], result_names = ["norm" : i32]}> ({
}) : () -> ()
