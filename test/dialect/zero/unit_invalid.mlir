// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of units, each by its name.

// unit_c1
// expected-error@+1 {{has no members: nothing would be gathered}}
zero.unit @u []

// -----

// unit_c1
zero.parameter @weight : 8xf32
// expected-error@+1 {{member @wieght is not a zero.parameter of this module; did you mean @weight?}}
zero.unit @u [@wieght]

// -----

// unit_c1
zero.parameter @w : 8xf32
// expected-error@+1 {{member @w is listed twice}}
zero.unit @u [@w, @w]

// -----

// unit_c1
zero.parameter @w : 8xf32
// expected-note@+1 {{the other one is here}}
zero.unit @u [@w]
// expected-error@+1 {{member @w is in another unit as well}}
zero.unit @v [@w]

// -----

// bucket_c6
zero.parameter @w : 8xf32
zero.unit @layer0 [@w]
// expected-error@+1 {{unit @layer1 is not a zero.unit of this module; did you mean @layer0?}}
zero.bucket @b0 : 32xf32 arrives f32 [@w] offsets [0] extents [32] unit @layer1

// -----

// bucket_c6
zero.parameter @w : 8xf32
zero.parameter @v : 8xf32
// expected-note@+1 {{the unit is here}}
zero.unit @layer0 [@w]
// expected-error@+1 {{is of unit @layer0, and member @v is not}}
zero.bucket @b0 : 64xf32 arrives f32 [@w, @v] offsets [0, 32] extents [32, 32] unit @layer0

// -----

// unit_c2
// expected-note@+1 {{@a is here}}
zero.parameter @a : 8xbf16, on = [pp : 0]
// expected-note@+1 {{@b is here}}
zero.parameter @b : 8xbf16, on = [pp : 1]
zero.mesh @m <["pp" = 2]>
// expected-error@+1 {{member @b is on other pipeline stages than member @a; put them into units of their own}}
zero.unit @u [@a, @b]

// -----

// unit_c3
zero.parameter @a : 8xf32
// expected-note@+1 {{@b is here}}
zero.parameter @b : 8xf16
// expected-error@+1 {{member @b is of 'f16', which does not hold every number of gather dtype 'bf16'; leave out gather_dtype, or the parameter}}
zero.unit @u [@a, @b] gather_dtype bf16

// -----

// unit_c3
zero.parameter @a : 8xbf16
// expected-error@+1 {{gather_dtype must be f16, bf16, f32 or f64, got 'f8E4M3FN', whose numbers need a scale for each parameter}}
zero.unit @u [@a] gather_dtype f8E4M3FN

// -----

// unit_c3
zero.parameter @a : 8xbf16
// expected-error@+1 {{gather_dtype must be f16, bf16, f32 or f64, got 'i8'}}
zero.unit @u [@a] gather_dtype i8
