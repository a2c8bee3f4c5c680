// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// What is on some pipeline stages only.

// value_c8
zero.mesh @m <["pp" = 2]>
// expected-error@+1 {{coordinate 1 of axis 'pp' is listed twice}}
zero.parameter @w : 8xf32, on = [pp : 1, pp : 1]

// -----

// value_c8
zero.mesh @m <["pp" = 2]>
// expected-error@+1 {{axis 'pp' shards a value that is on some of its coordinates only}}
zero.parameter @w : 8xf32, sharded = [pp], on = [pp : 1]

// -----

// backward_c9
// expected-note@+1 {{axes are declared here}}
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 2]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w is on coordinate 2 of "pp", which has 2}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], on = [pp : 2]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], on = [pp : 2]>
  }
  zero.return []
}

// -----

// backward_c9
// expected-note@+1 {{axes are declared here}}
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 0]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w is on coordinate 0 of "pp", which is no axis of mesh @m}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], on = [pp : 0]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], on = [pp : 0]>
  }
  zero.return []
}

// -----

// backward_c9: on another stage than its parameter.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 1]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be where @w is}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], on = [pp : 0]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], on = [pp : 0]>
  }
  zero.return []
}

// -----

// backward_c9: an expert of the ranks dp = 1, without what the others' batches add.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @w : 8xf32, on = [dp : 1]
zero.step @s on @m normalize(dp : -1) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be on all ranks of "dp", whose ranks have batches of their own, or on one of them and reduced there, got '!zero.value<8xf32, partial = [micro], on = [dp : 1], scaled = [dp : 1]>', expected '!zero.value<8xf32, partial = [micro], reduced = [dp], on = [dp : 1], scaled = [dp : 1]>'}}
    %d = zero.backward(@w) prescaled() replicated [pp] : !zero.value<8xf32, partial = [micro], on = [dp : 1], scaled = [dp : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [micro], on = [dp : 1], scaled = [dp : 1]>
  }
  zero.return []
}

// -----

// sqrt_c1, and all others that want what every rank has: the norm of one stage.
zero.mesh @m <["pp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, on = [pp : 1]>) {
  // expected-error@+1 {{operand must be on every rank, got '!zero.value<f64, on = [pp : 1]>'; zero.count_replicated_once makes a share of a sum of it}}
  %n = zero.sqrt %a : !zero.value<f64, on = [pp : 1]>
  zero.return []
}

// -----

// scale_c1
zero.mesh @m <["pp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, on = [pp : 1]>, %b: !zero.value<8xf32>) {
  // expected-error@+1 {{operand must be on every rank, got '!zero.value<f64, on = [pp : 1]>'}}
  %n = zero.scale %b by %a : !zero.value<8xf32> by !zero.value<f64, on = [pp : 1]>
  zero.return []
}

// -----

// stack_c1, sum_squares_c2: what is on different stages is no one vector, and no one sum.
zero.mesh @m <["pp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, on = [pp : 1]>, %b: !zero.value<f64, on = [pp : 0]>) {
  // expected-error@+1 {{operands must have the same placement}}
  %v = zero.stack %a, %b : !zero.value<f64, on = [pp : 1]>, !zero.value<f64, on = [pp : 0]>
  zero.return []
}

// -----

zero.mesh @m <["pp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<8xf32, on = [pp : 1]>, %b: !zero.value<8xf32, on = [pp : 0]>) {
  // expected-error@+1 {{operands must have the same placement and scale}}
  %v = zero.sum_squares %a, %b : !zero.value<8xf32, on = [pp : 1]>, !zero.value<8xf32, on = [pp : 0]>
  zero.return []
}

// -----

// all_reduce_c1: over stages only what is counted once adds up.
zero.mesh @m <["pp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, on = [pp : 1]>) {
  %o = zero.count_replicated_once %a over [pp] : !zero.value<f64, on = [pp : 1]>
  %s = zero.all_reduce %o over [pp] : !zero.value<f64, partial = [pp]>
  // expected-error@+1 {{operand must be partial over 'pp', got '!zero.value<f64, on = [pp : 1]>'}}
  %t = zero.all_reduce %a over [pp] : !zero.value<f64, on = [pp : 1]>
  zero.return []
}

// -----

// bucket_c5
zero.mesh @m <["pp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 1]
// expected-error@+1 {{member @w is '!zero.value<8xf32, on = [pp : 1]>', on other stages than '!zero.value<8xf32, on = [pp : 0]>'}}
zero.bucket @b : 8xf32, on = [pp : 0] arrives f32 [@w] offsets [0] extents [8]

// -----

// value_c8: with whom would it add up?
zero.mesh @m <["pp" = 2]>
// expected-error@+1 {{axis 'pp' is partial of a value that is on one of its coordinates, where nobody has another part}}
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [pp], on = [pp : 1]>) {
  zero.return []
}

// -----

// backward_c9: tied, and each stage would keep its own.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 0, pp : 1]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be partial over "pp": each of its stages delivers an addend, got '!zero.value<8xf32, partial = [dp, micro], on = [pp : 0, pp : 1]>', expected '!zero.value<8xf32, partial = [dp, micro, pp], on = [pp : 0, pp : 1]>'}}
    %d = zero.backward(@w) prescaled() replicated [pp] : !zero.value<8xf32, partial = [dp, micro], on = [pp : 0, pp : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], on = [pp : 0, pp : 1]>
  }
  zero.return []
}

// -----

// backward_c9: a third of what two of three deliver is no mean.
zero.mesh @m <["pp" = 3, "dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 0, pp : 1]
zero.step @s on @m normalize(pp : -1) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be on all ranks of "pp", whose ranks have batches of their own, or on one of them and reduced there, got}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, pp, micro], on = [pp : 0, pp : 1], scaled = [pp : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, pp, micro], on = [pp : 0, pp : 1], scaled = [pp : 1]>
  }
  zero.return []
}

// -----

// backward_c11: experts as one parameter of all, and as one each.
zero.mesh @m <["ep" = 2]>
zero.parameter @stacked : 8xf32, sharded = [ep]
zero.parameter @alone : 8xf32, on = [ep : 1]
zero.step @s on @m normalize(ep : -1) () {
  %g:2 = zero.micro_batches in f32 {
    // expected-error@+1 {{source @alone is on some coordinates of "ep", and @stacked is sharded over it; declare a parameter for each coordinate of "ep" instead of @stacked, or shard both}}
    %d:2 = zero.backward(@stacked, @alone) prescaled() : !zero.value<8xf32, sharded = [ep], partial = [micro], reduced = [ep], scaled = [ep : 1]>, !zero.value<8xf32, partial = [micro], reduced = [ep], on = [ep : 1], scaled = [ep : 1]>
    zero.yield %d#0, %d#1 : !zero.value<8xf32, sharded = [ep], partial = [micro], reduced = [ep], scaled = [ep : 1]>, !zero.value<8xf32, partial = [micro], reduced = [ep], on = [ep : 1], scaled = [ep : 1]>
  }
  zero.return []
}
