// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics

// schedule_c1
// expected-error@+1 {{needs at least one counter and an initial value of each, got 0 and 0}}
"zero.schedule"() <{sym_name = "lr", counter_names = [], counter_initial = array<f64>}> ({
  %one = arith.constant 1.0 : f64
  zero.yield %one : f64
}, {
^next(%skipped: i1):
  zero.yield
}) : () -> ()

// -----

// schedule_c2
// expected-error@+1 {{value must take 1 f64, got ('i1', 'f64')}}
zero.schedule @lr counters [step = 1.0] value {
^value(%skipped: i1, %step: f64):
  zero.yield %step : f64
} next {
^next(%skipped: i1, %step: f64):
  zero.yield %step : f64
}

// -----

// schedule_c2
// expected-error@+1 {{value must yield 1 f64, got ('f64', 'f64')}}
zero.schedule @lr counters [step = 1.0] value {
^value(%step: f64):
  zero.yield %step, %step : f64, f64
} next {
^next(%skipped: i1, %step: f64):
  zero.yield %step : f64
}

// -----

// schedule_c2: the next value of each counter.
// expected-error@+1 {{next must yield 2 f64, got ('f64')}}
zero.schedule @lr counters [step = 1.0, left = 9.0] value {
^value(%step: f64, %left: f64):
  zero.yield %step : f64
} next {
^next(%skipped: i1, %step: f64, %left: f64):
  zero.yield %step : f64
}

// -----

// schedule_c3
// expected-note@+1 {{of @lr}}
zero.schedule @lr counters [step = 1.0] value {
^value(%step: f64):
  // expected-error@+1 {{is not allowed in the body of a schedule, which holds arith ops and math.sqrt, fma, absf and copysign in f64 only}}
  %narrow = arith.truncf %step : f64 to f32
  zero.yield %step : f64
} next {
^next(%skipped: i1, %step: f64):
  zero.yield %step : f64
}

// -----

// read_schedule_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() () {
  // expected-error@+1 {{@lr is not a zero.schedule of this module}}
  %lr = zero.read_schedule @lr
  zero.return []
}

// -----

// read_schedule_c2, advance_c1: a second version, or none between two.
zero.mesh @m <["dp" = 2]>
zero.schedule @lr counters [rate = 1.0] value {
^value(%rate: f64):
  zero.yield %rate : f64
} next {
^next(%skipped: i1, %rate: f64):
  zero.yield %rate : f64
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  // expected-note@+1 {{it was read here}}
  %a = zero.read_schedule @lr
  // expected-error@+1 {{reads @lr again}}
  %b = zero.read_schedule @lr
  zero.return []
}

// -----

zero.mesh @m <["dp" = 2]>
zero.schedule @lr counters [rate = 1.0] value {
^value(%rate: f64):
  zero.yield %rate : f64
} next {
^next(%skipped: i1, %rate: f64):
  zero.yield %rate : f64
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %a = zero.read_schedule @lr
  // expected-note@+1 {{it was advanced here}}
  zero.advance %a when %v : !zero.value<f64>, !zero.value<f64>
  // expected-error@+1 {{advances @lr again}}
  zero.advance %a when %v : !zero.value<f64>, !zero.value<f64>
  zero.return []
}
