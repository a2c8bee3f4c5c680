// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// What stages cannot send.

// activation_c1
// expected-error@+1 {{elements must be f16, bf16, f32, f64, i8, i32 or i64, got 'i16'}}
zero.activation @h : tensor<4xi16> over pp from 0 to 1

// -----

// activation_c1
// expected-error@+1 {{elements must be f16, bf16, f32, f64, i8, i32 or i64, got 'ui8'}}
zero.activation @h : tensor<4xui8> over pp from 0 to 1

// -----

// activation_c1
// expected-error@+1 {{has 9 dimensions, expected at most 8}}
zero.activation @h : tensor<1x1x1x1x1x1x1x1x1xf32> over pp from 0 to 1

// -----

// activation_c1
// expected-error@+1 {{must have at most 1099511627776 elements}}
zero.activation @h : tensor<1048576x?x1048577xf32> over pp from 0 to 1

// -----

// activation_c1
// expected-error@+1 {{must have no encoding, got 'tensor<4xf32, "x">'}}
zero.activation @h : tensor<4xf32, "x"> over pp from 0 to 1

// -----

// activation_c2
// expected-error@+1 {{must go from one pipeline stage to another, got 1 and 1}}
zero.activation @h : tensor<4xf32> over pp from 1 to 1

// -----

// activation_c2
// expected-error@+1 {{must go from one pipeline stage to another, got 0 and -1}}
zero.activation @h : tensor<4xf32> over pp from 0 to -1

// -----

// Two stages that differ in the type would have to declare it twice.
// expected-note@+1 {{see existing symbol definition here}}
zero.activation @h : tensor<4xf32> over pp from 0 to 1
// expected-error@+1 {{redefinition of symbol named 'h'}}
zero.activation @h : tensor<4xbf16> over pp from 0 to 1

// -----

// activation_c3
// expected-note@+1 {{the mesh is @m}}
zero.mesh @m <["pp" = 2]>
// expected-error@+1 {{needs pp = 2, and 'pp' has size 2}}
zero.activation @h : tensor<4xf32> over pp from 1 to 2
zrt.program @p on @m inputs [] results [] [] {
}

// -----

// activation_c3, in a step
// expected-note@+1 {{the mesh is @m}}
zero.mesh @m <["pp" = 2]>
// expected-error@+1 {{is over 'pq', which is no axis of the mesh}}
zero.activation @h : tensor<4xf32> over pq from 0 to 1
zero.step @s on @m normalize() () {
  zero.return []
}

// -----

// activation_c4: stage 2 has no neighbour.
zero.mesh @m <["pp" = 4]>
// expected-note@+1 {{other stages have neighbours}}
zero.activation @h : tensor<4xf32> over pp from 0 to 1
zero.activation @i : tensor<4xf32> over pp from 1 to 3
// expected-error@+1 {{no activation comes to or from pipeline stage pp = 2; declare one, or make 'pp' smaller}}
zrt.program @p on @m inputs [] results [] [] {
}

// -----

// activation_c2, where a program is verified first.
zero.mesh @m <["pp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
}
// expected-error@+1 {{must go from one pipeline stage to another, got 1 and -1}}
zero.activation @h : tensor<4xf32> over pp from 1 to -1
