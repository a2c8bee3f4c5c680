// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Real numbers that are none, or not finite.

zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{a number in hexadecimal is the 16 digits of an f64, got 0x10; write the number in decimal}}
  %0 = zero.clip_coefficient %a max 0x10 : !zero.value<f64>
  zero.return []
}

// -----

zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{hexadecimal float literal should not have a leading minus}}
  %0 = zero.clip_coefficient %a max -0x3FB999999999999A : !zero.value<f64>
  zero.return []
}

// -----

// clip_coefficient_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{number "max" must be finite, got nan}}
  %0 = zero.clip_coefficient %a max 0x7FF8000000000000 : !zero.value<f64>
  zero.return []
}

// -----

zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{number "epsilon" must be finite, got INF}}
  %0 = zero.clip_coefficient %a max 1 epsilon 0x7FF0000000000000 : !zero.value<f64>
  zero.return []
}

// -----

zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{epsilon must be positive, got -1}}
  %0 = zero.clip_coefficient %a max 1.0 epsilon -1.0 : !zero.value<f64>
  zero.return []
}

// -----

zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{epsilon must be positive, got 0}}
  %0 = zero.clip_coefficient %a max 1.0 epsilon 0.0 : !zero.value<f64>
  zero.return []
}

// -----

// expected-error@+1 {{default of hyperparameter "wd" must be finite, got nan}}
zero.optimizer @sgd hyper [lr, wd = 0x7FF8000000000000] {
^prepare(%lr: f64, %wd: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}

// -----

// expected-error@+1 {{counter "t" must be finite, got -INF}}
zero.optimizer @sgd hyper [lr] counters [t = 0xFFF0000000000000] {
^prepare(%lr: f64, %t: f64):
  zero.yield %t, %lr : f64, f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
