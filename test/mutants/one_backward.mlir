// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// #7981: the update sees one backward pass instead of the sum of all. There is no
// accumulator that could be written over. What is left is to take one backward pass for
// the sum, which neither its place nor its type allows.

zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.step @s on @m normalize(dp : -1) () {
  // expected-error@+1 {{expects parent op 'zero.micro_batches'}}
  %last = zero.backward(@w) prescaled() : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
  zero.return []
}

// -----

zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.step @s on @m normalize(dp : -1) () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    // expected-error@+1 {{operand is still partial over 'micro': sum it over the backward passes first}}
    %r = zero.reduce %d : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  zero.return []
}

// -----

// Nor may a backward pass claim to be the sum.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.step @s on @m normalize(dp : -1) () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xbf16, partial = [dp], scaled = [dp : 1]>
    // expected-error@+1 {{yields a value that is not partial over 'micro' and would be counted once per backward pass}}
    zero.yield %d : !zero.value<8xbf16, partial = [dp], scaled = [dp : 1]>
  }
  zero.return []
}

// -----

// Stage 2 reduces in the loop. A slice there is an addend of the sum.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 64xbf16
zero.bucket @b0 : 64xf32 arrives bf16 [@w] offsets [0] extents [64]
zero.step @s on @m normalize(dp : -1) () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
    %slice = zero.reduce_scatter %d over [dp] : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
    // expected-error@+1 {{operand must not be partial over 'micro'}}
    %sum = zero.sum_squares %slice : !zero.value<64xf32, sharded = [dp], partial = [micro], scaled = [dp : 1]>
    zero.yield %slice : !zero.value<64xf32, sharded = [dp], partial = [micro], scaled = [dp : 1]>
  }
  zero.return []
}
