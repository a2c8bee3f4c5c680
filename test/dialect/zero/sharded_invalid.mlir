// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of the sharded phase.

// all_reduce_c1: reduced twice (a norm counted per group, #7847, is one of
// these: its second all-reduce finds nothing partial).
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>) {
  %r = zero.all_reduce %a over [dp] : !zero.value<f64, partial = [dp]>
  // expected-error@+1 {{operand must be partial over 'dp', got '!zero.value<f64>'}}
  %q = zero.all_reduce %r over [dp] : !zero.value<f64>
  zero.return []
}

// -----

// reduce_scatter_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand must have a last dimension that is not sharded}}
  %r = zero.reduce_scatter %a over [dp] : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// all_gather_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{axes must be those that shard the last dimension, got '!zero.value<f64>'}}
  %r = zero.all_gather %a over [dp] : !zero.value<f64>
  zero.return []
}

// -----

// add_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  %v = zero.stack %a, %a : !zero.value<f64>, !zero.value<f64>
  // expected-error@+1 {{operands must have one shape and element type}}
  %r = zero.add %a, %v : !zero.value<f64>, !zero.value<2xf64>
  zero.return []
}

// -----

// add_c3: two gradients with different scales.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 1]>, %b: !zero.value<f64>) {
  // expected-error@+1 {{operands must have the same scale, got (dp : 1) and (1)}}
  %r = zero.add %a, %b : !zero.value<f64, scaled = [dp : 1]>, !zero.value<f64>
  zero.return []
}

// -----

// add_c4
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, varying = [dp]>) {
  // expected-error@+1 {{operands are varying and no addends}}
  %r = zero.add %a, %a : !zero.value<f64, varying = [dp]>, !zero.value<f64, varying = [dp]>
  zero.return []
}

// -----

// sum_squares_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand must not be partial over 'dp'}}
  %r = zero.sum_squares %a : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// sum_squares_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 1]>, %b: !zero.value<f64>) {
  // expected-error@+1 {{operands must have the same placement and scale}}
  %r = zero.sum_squares %a, %b : !zero.value<f64, scaled = [dp : 1]>, !zero.value<f64>
  zero.return []
}

// -----

// stack_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>, %b: !zero.value<f64>) {
  // expected-error@+1 {{operands must have the same placement}}
  %r = zero.stack %a, %b : !zero.value<f64, partial = [dp]>, !zero.value<f64>
  zero.return []
}

// -----

// unstack_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  %v = zero.stack %a, %a : !zero.value<f64>, !zero.value<f64>
  // expected-error@+1 {{needs an f64 vector with one element per scale}}
  %r = zero.unstack %v [#zero.scale<>] : !zero.value<2xf64>
  zero.return []
}

// -----

// scale_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>, %f: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{factor must be replicated}}
  %r = zero.scale %a by %f : !zero.value<f64> by !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// scale_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, varying = [dp]>, %f: !zero.value<f64>) {
  // expected-error@+1 {{operand is varying}}
  %r = zero.scale %a by %f : !zero.value<f64, varying = [dp]> by !zero.value<f64>
  zero.return []
}

// -----

// sqrt_c1: the root of a part is no part of the root (#7847).
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand must be replicated}}
  %r = zero.sqrt %a : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// sqrt_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 1]>) {
  // expected-error@+1 {{scale must have even exponents, got (dp : 1)}}
  %r = zero.sqrt %a : !zero.value<f64, scaled = [dp : 1]>
  zero.return []
}

// -----

// outcome_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>, %b: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand must be replicated}}
  %v = zero.outcome(%a) missing %b backwards %a squared %a ranks 2 : !zero.value<f64>, !zero.value<f64, partial = [dp]>, !zero.value<f64>, !zero.value<f64>
  zero.return []
}

// -----

// update_bucket_c2: an update of what is still scaled.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 64xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.step @s on @m normalize(dp : -1) (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.reduce_scatter %g over [dp] : !zero.value<64xf32, partial = [dp], scaled = [dp : 1]>
  // expected-error@+1 {{operand is still scaled by (dp : 1)}}
  %p = zero.update_bucket @b0 with @sgd(%r) when %v rows() row_of [0] : f32, !zero.value<64xf32, sharded = [dp], scaled = [dp : 1]>, !zero.value<f64>, ()
  zero.return []
}

// -----

// assign_c1: parameters that only their owner has.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 64xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.reduce_scatter %g over [dp] : !zero.value<64xf32, partial = [dp]>
  // expected-error@+1 {{value must be placed as bucket @b0, so that every replica receives it: expected '!zero.value<64xf32>', got '!zero.value<64xf32, sharded = [dp]>'}}
  zero.assign @b0, %r : !zero.value<64xf32, sharded = [dp]>
  zero.return []
}

// -----

// reduce_scatter_c1: of what is on some stages nobody else has a slice.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%g: !zero.value<8xf32, partial = [micro]>) {
  // expected-error@+1 {{operand cannot be sharded over 'micro', the axis of time}}
  %r = zero.reduce_scatter %g over [micro] : !zero.value<8xf32, partial = [micro]>
  zero.return []
}

// -----

// reduce_scatter_c1
zero.mesh @m <["pp" = 4]>
zero.step @s on @m normalize() (%g: !zero.value<8xf32, partial = [pp], on = [pp : 0, pp : 3]>) {
  // expected-error@+1 {{operand cannot be sharded over 'pp', of which it is on some coordinates}}
  %r = zero.reduce_scatter %g over [pp] : !zero.value<8xf32, partial = [pp], on = [pp : 0, pp : 3]>
  zero.return []
}

// -----

// unstack_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%v: !zero.value<2xf64, sharded = [dp]>) {
  // expected-error@+1 {{needs a vector that is not sharded, got '!zero.value<2xf64, sharded = [dp]>'}}
  %r:2 = zero.unstack %v [#zero.scale<>, #zero.scale<>] : !zero.value<2xf64, sharded = [dp]>
  zero.return []
}

// -----

// sum_squares_c3
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 8]>) {
  // expected-error@+1 {{result would have scale (dp : 16), expected exponents of -8 to 8}}
  %r = zero.sum_squares %a : !zero.value<f64, scaled = [dp : 8]>
  zero.return []
}

// -----

// scale_c3
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 8]>, %b: !zero.value<f64, scaled = [dp : 1]>) {
  // expected-error@+1 {{result would have scale (dp : 9), expected exponents of -8 to 8}}
  %r = zero.scale %a by %b : !zero.value<f64, scaled = [dp : 8]> by !zero.value<f64, scaled = [dp : 1]>
  zero.return []
}

// -----

// micro_batches_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() () {
  // expected-error@+1 {{expected f16, bf16, f32 or f64 after 'in', got 'tf32'}}
  %g = zero.micro_batches in tf32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}
