// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of values that move between memories, each by its name.

// transfer_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%g: !zero.value<8xf32>) {
  // expected-error@+1 {{operand is on the device already, got '!zero.value<8xf32>'}}
  %h = zero.transfer %g to device : !zero.value<8xf32>
  zero.return []
}

// -----

// transfer_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%g: !zero.value<f64>) {
  // expected-error@+1 {{operand is a scalar, which both sides read}}
  %h = zero.transfer %g to host : !zero.value<f64>
  zero.return []
}

// -----

// value_c6
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{a scalar is in no space, got 'host'}}
zero.step @s on @m normalize() (%g: !zero.value<f64, space = host>) {
  zero.return []
}

// -----

// A space that does not exist.
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{expected device or host, got 'disk'}}
zero.step @s on @m normalize() (%g: !zero.value<8xf32, space = disk>) {
  zero.return []
}

// -----

// collective_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%g: !zero.value<8xf32, partial = [dp], space = host>) {
  // expected-error@+1 {{operand must be on the device, got '!zero.value<8xf32, partial = [dp], space = host>'; zero.transfer it first}}
  %r = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp], space = host>
  zero.return []
}

// -----

// add_c2: memory is part of where a value is.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<8xf32>, %b: !zero.value<8xf32, space = host>) {
  // expected-error@+1 {{operands must have the same placement}}
  %r = zero.add %a, %b : !zero.value<8xf32>, !zero.value<8xf32, space = host>
  zero.return []
}

// -----

// assign_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 64xf32
zero.unit @u [@w]
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64] unit @u
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g over [dp] : !zero.value<64xf32, partial = [dp]>
  %h = zero.transfer %r to host : !zero.value<64xf32>
  // expected-error@+1 {{value must be on the device, got '!zero.value<64xf32, space = host>'; zero.transfer it first}}
  zero.assign @b0, %h : !zero.value<64xf32, space = host>
  zero.return []
}

// -----

// assign_c3: slices of a bucket of no unit.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 64xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.reduce_scatter %g over [dp] : !zero.value<64xf32, partial = [dp]>
  %h = zero.transfer %r to host : !zero.value<64xf32, sharded = [dp]>
  // expected-error@+1 {{value must be on the device, got '!zero.value<64xf32, sharded = [dp], space = host>'; zero.transfer it first}}
  zero.assign @b0, %h : !zero.value<64xf32, sharded = [dp], space = host>
  zero.return []
}

// -----

// backward_c6
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradients arrive on the device, got '!zero.value<8xf32, partial = [dp, micro], space = host>'}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], space = host>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], space = host>
  }
  zero.return []
}
