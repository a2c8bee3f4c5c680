// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// #7847: sums of squares that are reduced for each group and then once more, or
// that never are.

// Once more.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<64xf32, sharded = [dp]>, %b: !zero.value<64xf32, sharded = [dp]>) {
  %sum0 = zero.sum_squares %a : !zero.value<64xf32, sharded = [dp]>
  %sum1 = zero.sum_squares %b : !zero.value<64xf32, sharded = [dp]>
  %group0 = zero.all_reduce %sum0 over [dp] : !zero.value<f64, partial = [dp]>
  %group1 = zero.all_reduce %sum1 over [dp] : !zero.value<f64, partial = [dp]>
  %sum = zero.add %group0, %group1 : !zero.value<f64>, !zero.value<f64>
  // expected-error@+1 {{operand must be partial over 'dp', got '!zero.value<f64>'}}
  %twice = zero.all_reduce %sum over [dp] : !zero.value<f64>
  zero.return []
}

// -----

// One group was reduced and the other was not.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<64xf32, sharded = [dp]>, %b: !zero.value<64xf32, sharded = [dp]>) {
  %sum0 = zero.sum_squares %a : !zero.value<64xf32, sharded = [dp]>
  %sum1 = zero.sum_squares %b : !zero.value<64xf32, sharded = [dp]>
  %group0 = zero.all_reduce %sum0 over [dp] : !zero.value<f64, partial = [dp]>
  // expected-error@+1 {{operands must have the same placement, or a side would be counted once per rank: got '!zero.value<f64>' and '!zero.value<f64, partial = [dp]>'}}
  %sum = zero.add %group0, %sum1 : !zero.value<f64>, !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// Never: the root of a rank's own part.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<64xf32, sharded = [dp]>) {
  %sum = zero.sum_squares %a : !zero.value<64xf32, sharded = [dp]>
  // expected-error@+1 {{operand must be replicated, got '!zero.value<f64, partial = [dp]>'}}
  %norm = zero.sqrt %sum : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// The norm of gradients before they are reduced.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize(dp : -1) () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  // expected-error@+1 {{operand must be reduced, got partial over 'dp' in '!zero.value<8xf32, partial = [dp], scaled = [dp : 1]>'}}
  %norm = zero.norm %g : !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>
  zero.return [norm] %norm : !zero.value<f64>
}
