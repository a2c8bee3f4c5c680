// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of the orders of units, each by its name.

// unit_order_c1
zero.parameter @w : 8xf32
zero.unit @layer0 [@w]
// expected-error@+1 {{@layer1 is not a zero.unit of this module; did you mean @layer0?}}
zero.unit_order [@layer1]

// -----

// unit_order_c1
zero.parameter @w : 8xf32
zero.unit @layer0 [@w]
// expected-error@+1 {{lists unit @layer0 twice, expected once}}
zero.unit_order [@layer0, @layer0]

// -----

// unit_order_c1
zero.parameter @w : 8xf32
zero.parameter @v : 8xf32
zero.unit @layer0 [@w]
// expected-note@+1 {{the unit is here}}
zero.unit @layer1 [@v]
// expected-error@+1 {{does not list unit @layer1, expected each unit of the module}}
zero.unit_order [@layer0]

// -----

// unit_order_c1
// expected-error@+1 {{lists no unit, and the module has none}}
zero.unit_order []

// -----

// unit_order_c2
zero.parameter @w : 8xf32
zero.parameter @v : 8xf32
zero.parameter @u : 8xf32
zero.unit @layer0 [@w]
zero.unit @layer1 [@v]
zero.unit @layer2 [@u]
// expected-note@+1 {{the other one is here}}
zero.unit_order [@layer0, @layer1, @layer2]
// expected-error@+1 {{begins with unit @layer0, as another order does; the first unit says which order begins}}
zero.unit_order [@layer0, @layer2, @layer1]

// -----

zero.parameter @w : 8xf32
zero.unit @layer0 [@w]
zero.mesh @m <["dp" = 2]>
module @inner {
  // expected-error@+1 {{@layer0 is not a zero.unit of this module}}
  zero.unit_order [@layer0]
}

// -----

// unit_order_c3
zero.parameter @w : 8xf32
zero.unit @layer0 [@w]
// expected-error@+1 {{gathers -1 units ahead, expected at least 0}}
zero.unit_order [@layer0] prefetch -1

// -----

// unit_order_c2: on each pipeline stage
zero.mesh @m <["pp" = 2]>
zero.parameter @a : 8xbf16, on = [pp : 0]
zero.parameter @b : 8xbf16, on = [pp : 0]
zero.parameter @c : 8xbf16, on = [pp : 0]
zero.parameter @x : 8xbf16, on = [pp : 1]
zero.unit @ua [@a]
zero.unit @ub [@b]
zero.unit @uc [@c]
zero.unit @ux [@x]
// expected-note@+1 {{the other one is here}}
zero.unit_order [@ua, @ub, @uc, @ux]
// expected-error@+1 {{begins with unit @ua on the pipeline stage pp = 0, as another order does; the first unit says which order begins}}
zero.unit_order [@ux, @ua, @uc, @ub]

// -----

// On the stage of one unit both orders are the same.
zero.mesh @m <["pp" = 2]>
zero.parameter @a : 8xbf16, on = [pp : 0]
zero.parameter @b : 8xbf16, on = [pp : 0]
zero.parameter @x : 8xbf16, on = [pp : 1]
zero.unit @ua [@a]
zero.unit @ub [@b]
zero.unit @ux [@x]
zero.unit_order [@ua, @ub, @ux]
zero.unit_order [@ux, @ub, @ua]
