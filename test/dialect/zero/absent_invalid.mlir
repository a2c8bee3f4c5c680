// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: zero-opt %s --split-input-file --verify-diagnostics

// group_c2
// expected-note@+1 {{@w is declared here}}
zero.parameter @w : 5xf32
// expected-error@+1 {{has 'absent skip', and its member @w is not optional: a step without its gradient is refused; declare it 'optional'}}
zero.group @head [@w] absent skip

// -----

// group_c2
zero.parameter @w : 5xf32 optional
// expected-error@+1 {{has 'absent skip', and its member @w is in another group, too}}
zero.group @head [@w] absent skip
// expected-note@+1 {{the other group is here}}
zero.group @rest [@w]

// -----

// group_c2
// expected-error@+1 {{has 'absent skip' and no member whose gradient could arrive; leave 'absent skip' out}}
zero.group @head [] absent skip

// -----

// delivered_count_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() () {
  // expected-error@+1 {{counts the gradients of no parameter}}
  zero.delivered_count [] over [dp]
  zero.return []
}

// -----

// delivered_count_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 5xf32 optional
zero.step @s on @m normalize() () {
  // expected-error@+1 {{parameter @w is no member of a zero.bucket of this module}}
  %n = zero.delivered_count [@w] over [dp]
  zero.return []
}

// -----

// delivered_count_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 5xf32 optional
zero.bucket @b : 32xf32 arrives f32 [@w] offsets [0] extents [32]
zero.step @s on @m normalize() () {
  // expected-error@+1 {{parameter @w is listed twice}}
  %n:2 = zero.delivered_count [@w, @w] over [dp]
  zero.return []
}

// -----

// A count of one rank.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 5xf32 optional
zero.bucket @b : 32xf32 arrives f32 [@w] offsets [0] extents [32]
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  // expected-note@+1 {{prior use here}}
  %n = zero.delivered_count [@w] over [dp]
  // expected-error@+1 {{use of value '%n' expects different type than prior uses: '!zero.value<f64>' vs '!zero.value<f64, partial = [dp]>'}}
  %g = zero.group_outcome %v delivered %n
  zero.return []
}

// -----

// update_bucket_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 5xf32 optional
zero.parameter @u : 5xf32 optional
zero.bucket @b : 64xf32 arrives f32 [@w, @u] offsets [0, 32] extents [32, 32]
zero.optimizer @sgd hyper [lr] {
^bb0(%lr: f64):
  zero.yield %lr : f64
} update {
^bb0(%g: f32, %p: f32, %step: f32):
  %0 = math.fma %g, %step, %p : f32
  zero.yield %0 : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b) prescaled() replicated [dp] : !zero.value<64xf32, partial = [micro]>
    zero.yield %d : !zero.value<64xf32, partial = [micro]>
  }
  // expected-error@+1 {{has 2 outcomes, expected 1 or one for each of 3 rows}}
  %p = zero.update_bucket @b with @sgd(%g) when %v, %v rows(%v, %v, %v) row_of [0, 1] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>, !zero.value<f64>, !zero.value<f64>)
  zero.return []
}
