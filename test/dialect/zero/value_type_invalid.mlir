// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// The rules of the value type, each by its name.

// value_c1
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{element type must be f16, bf16, f32 or f64, got 'i32'}}
zero.step @s on @m normalize() (%a: !zero.value<8xi32>) {
  zero.return []
}

// -----

// value_c2
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{axis 'dp' has two placements, sharded and partial}}
zero.step @s on @m normalize() (%a: !zero.value<8xf32, sharded = [dp], partial = [dp]>) {
  zero.return []
}

// -----

// value_c3
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{axis 'dp' shards dimension 1 of a value with 1 dimension}}
zero.step @s on @m normalize() (%a: !zero.value<8xf32, sharded = [dp : 1]>) {
  zero.return []
}

// -----

// value_c3
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{axis 'dp' shards a scalar}}
zero.step @s on @m normalize() (%a: !zero.value<f64, sharded = [dp]>) {
  zero.return []
}

// -----

// value_c4
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{scale symbol 'dp' has exponent 0}}
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 0]>) {
  zero.return []
}

// -----

// value_c4
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{scale symbol 'dp' is listed twice}}
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 1, dp : 2]>) {
  zero.return []
}

// -----

// value_c5
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{time ('micro') can only be partial, got varying}}
zero.step @s on @m normalize() (%a: !zero.value<f64, varying = [micro]>) {
  zero.return []
}

// -----

// A typo in a clause lists the clauses there are.
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{expected sharded, partial, partial_max, partial_min, partial_or, varying, reduced, on, scaled or space, got 'parital'}}
zero.step @s on @m normalize() (%a: !zero.value<f64, parital = [dp]>) {
  zero.return []
}
