// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics

// step_c8
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{two arguments are called 'lr'}}
zero.step @s on @m normalize() (%a: !zero.value<f64> {zero.name = "lr"}, %b: !zero.value<f64>, %c: !zero.value<f64> {zero.name = "lr"}) {
  zero.return []
}

// -----

// step_c8
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{argument 1 may be {zero.tokens} or have a {zero.name = "..."}, and nothing else, got {zero.name = ""}}}
zero.step @s on @m normalize() (%a: !zero.value<f64>, %b: !zero.value<f64> {zero.name = ""}) {
  zero.return []
}

// -----

// step_c8
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{argument 0 may be {zero.tokens} or have a {zero.name = "..."}, and nothing else, got {zero.name = 1 : i64}}}
zero.step @s on @m normalize() (%a: !zero.value<f64> {zero.name = 1}) {
  zero.return []
}

// -----

// step_c8
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{name of an argument has a control character: "a\0A"}}
zero.step @s on @m normalize() (%a: !zero.value<f64> {zero.name = "a\0A"}) {
  zero.return []
}

// -----

// step_c8
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{has 1 argument, and 2 names of arguments}}
"zero.step"() <{sym_name = "s", mesh = @m, normalize = #zero.scale<>, argument_names = ["a", "b"]}> ({
^bb0(%n: !zero.value<f64>):
  zero.return []
}) : () -> ()
