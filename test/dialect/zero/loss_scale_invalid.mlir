// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics

// loss_scale_c1
// expected-error@+1 {{needs at least one counter and an initial value of each, got 0 and 0}}
"zero.loss_scale"() <{sym_name = "s", counter_names = [], counter_initial = array<f64>}> ({
^update(%overflow: i1):
  zero.yield
}) : () -> ()

// -----

// loss_scale_c1
// expected-error@+1 {{has an empty name}}
zero.loss_scale @s counters ["" = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}

// -----

// loss_scale_c1
// expected-error@+1 {{name "scale" is used twice}}
zero.loss_scale @s counters [scale = 4.0, scale = 2.0] {
^update(%overflow: i1, %scale: f64, %clean: f64):
  zero.yield %scale, %clean : f64, f64
}

// -----

// loss_scale_c1: gradients would be divided by nothing.
// expected-error@+1 {{must begin as a positive number that has an inverse, got 0.0}}
zero.loss_scale @s counters [scale = 0.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}

// -----

// loss_scale_c2
// expected-error@+1 {{update must take an i1 and 1 f64, got ('f64', 'f64')}}
zero.loss_scale @s counters [scale = 4.0] {
^update(%overflow: f64, %scale: f64):
  zero.yield %scale : f64
}

// -----

// loss_scale_c2
// expected-error@+1 {{update must yield 2 f64, got ('f64')}}
zero.loss_scale @s counters [scale = 4.0, clean = 0.0] {
^update(%overflow: i1, %scale: f64, %clean: f64):
  zero.yield %scale : f64
}

// -----

// loss_scale_c3
// expected-note@+1 {{of @s}}
zero.loss_scale @s counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  // expected-error@+1 {{is not allowed in the body of a loss_scale, which holds arith ops and math.sqrt, fma, absf and copysign in f64 only}}
  %less = arith.truncf %scale : f64 to f32
  zero.yield %scale : f64
}

// -----

// read_scale_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() () {
  // expected-error@+1 {{@scale is not a zero.loss_scale of this module}}
  %s = zero.read_scale @scale
  zero.return []
}

// -----

// read_scale_c2: a second version.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
zero.step @s on @m normalize() loss_scale @scale (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled(loss_scale : 1) : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
  }
  // expected-note@+1 {{it was read here}}
  %s = zero.read_scale @scale
  zero.advance %s when %v : !zero.value<f64>, !zero.value<f64>
  // expected-error@+1 {{reads a loss scale again}}
  %t = zero.read_scale @scale
  zero.return []
}

// -----

// read_scale_c3: which nobody multiplied by.
zero.mesh @m <["dp" = 2]>
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
zero.step @s on @m normalize() () {
  // expected-error@+1 {{reads @scale, and the step has no loss scale}}
  %s = zero.read_scale @scale
  zero.return []
}

// -----

// advance_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  // expected-error@+1 {{needs what zero.read_scale or zero.read_schedule read}}
  zero.advance %v when %v : !zero.value<f64>, !zero.value<f64>
  zero.return []
}

// -----

// advance_c2
zero.mesh @m <["dp" = 2]>
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
zero.step @s on @m normalize() loss_scale @scale (%v: !zero.value<f64, partial = [dp]>) {
  %s = zero.read_scale @scale
  // expected-error@+1 {{outcome must be replicated, got '!zero.value<f64, partial = [dp]>'}}
  zero.advance %s when %v : !zero.value<f64>, !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// factor_c1: which version it is divided by.
zero.mesh @m <["dp" = 2]>
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
zero.step @s on @m normalize() loss_scale @scale () {
  // expected-error@+1 {{needs the loss scale as operand}}
  %f = zero.factor (loss_scale : -1)
  zero.return []
}

// -----

// factor_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%s: !zero.value<f64>) {
  // expected-error@+1 {{has a loss scale and none in its monomial}}
  %f = zero.factor (dp : -1) loss_scale %s : !zero.value<f64>
  zero.return []
}

// -----

// factor_c2
zero.mesh @m <["dp" = 2]>
// expected-note@+1 {{write 'loss_scale @name' after normalize(...)}}
zero.step @s on @m normalize() (%s: !zero.value<f64>) {
  // expected-error@+1 {{factor names 'loss_scale', and the step has none}}
  %f = zero.factor (loss_scale : -1) loss_scale %s : !zero.value<f64>
  zero.return []
}

// -----

// step_c7: it is no weight.
zero.mesh @m <["dp" = 2]>
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
// expected-error@+1 {{weighs by a loss scale, which belongs to what gradients arrive with: (loss_scale : 1)}}
zero.step @s on @m normalize(loss_scale : 1) loss_scale @scale () {
  zero.return []
}

// -----

// step_c7
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
// expected-error@+1 {{has a loss scale and nonfinite apply: no step would tell that it is too large}}
zero.step @s on @m normalize() nonfinite apply loss_scale @scale () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled(loss_scale : 1) : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
  }
  zero.return []
}

// -----

// step_c7: all gradients come of one loss.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @u : 8xf32
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
// expected-note@+1 {{all gradients of the step are of one loss}}
zero.step @s on @m normalize() loss_scale @scale () {
  %g:2 = zero.micro_batches in f32 {
    // expected-error@+1 {{arrives with (1), expected loss_scale to the power of 1}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    %e = zero.backward(@u) prescaled(loss_scale : 1) : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
    zero.yield %d, %e : !zero.value<8xf32, partial = [dp, micro]>, !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
  }
  zero.return []
}

// -----

// step_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
// expected-note@+1 {{write 'loss_scale @name' after normalize(...)}}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{arrival names 'loss_scale', and the step has none}}
    %d = zero.backward(@w) prescaled(loss_scale : 1) : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
  }
  zero.return []
}

// -----

// step_c7: the caller multiplies once.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
// expected-note@+1 {{all gradients of the step are of one loss}}
zero.step @s on @m normalize() loss_scale @scale () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{arrives with (loss_scale : 2), expected loss_scale to the power of 1}}
    %d = zero.backward(@w) prescaled(loss_scale : 2) : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 2]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], scaled = [loss_scale : 2]>
  }
  zero.return []
}

// -----

// loss_scale_c3
// expected-note@+1 {{of @s}}
zero.loss_scale @s counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  // expected-error@+1 {{is not allowed in the body of a loss_scale, which holds arith ops and math.sqrt, fma, absf and copysign in f64 only}}
  %integer = arith.constant 1 : i32
  zero.yield %scale : f64
}

// -----

// step_c7
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{loss scale @m is not a zero.loss_scale of this module}}
zero.step @s on @m normalize() loss_scale @m () {
  zero.return []
}

// -----

// step_c7: a name in a type is none that could be renamed.
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{expected 'loss_scale' instead of @scale: which loss scale it is the zero.step says}}
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [@scale : 1]>) {
  zero.return []
}
