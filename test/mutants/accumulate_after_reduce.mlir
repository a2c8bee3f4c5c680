// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// #7985: the gradients of all backward passes but the last are reduced, and the last is
// added to what came out. A sum over ranks and a rank's own addend have different
// types, at either phase.

zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.step @s on @m normalize(accumulation : -1, dp : -1) () {
  %most = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled(accumulation : -1) : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  %reduced = zero.reduce %most : !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>
  %last = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled(accumulation : -1) : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  // expected-error@+1 {{operands must have the same placement, or a side would be counted once per rank: got '!zero.value<8xf32>' and '!zero.value<8xf32, partial = [dp], scaled = [dp : 1]>'}}
  %sum = zero.add %reduced, %last : !zero.value<8xf32>, !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>
  zero.return []
}

// -----

// A slice of the reduced bucket, and the whole bucket of one rank.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 64xbf16
zero.bucket @b0 : 64xf32 arrives bf16 [@w] offsets [0] extents [64]
zero.step @s on @m normalize(accumulation : -1, dp : -1) () {
  %most = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled(accumulation : -1) : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %slice = zero.reduce_scatter %most over [dp] : !zero.value<64xf32, partial = [dp], scaled = [dp : 1]>
  %last = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled(accumulation : -1) : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<64xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  // expected-error@+1 {{operands must have the same placement, or a side would be counted once per rank: got '!zero.value<64xf32, sharded = [dp], scaled = [dp : 1]>' and '!zero.value<64xf32, partial = [dp], scaled = [dp : 1]>'}}
  %sum = zero.add %slice, %last : !zero.value<64xf32, sharded = [dp], scaled = [dp : 1]>, !zero.value<64xf32, partial = [dp], scaled = [dp : 1]>
  zero.return []
}
