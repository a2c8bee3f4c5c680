// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of the logical step. The first two are the seeds of this project.

// update_c3: the last backward pass of #7985, added after the reduction, would need
// an add of a partial and a replicated value.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>, %b: !zero.value<f64>) {
  // expected-error@+1 {{operands must have the same placement, or a side would be counted once per rank: got '!zero.value<f64, partial = [dp]>' and '!zero.value<f64>'}}
  %s = zero.add %a, %b : !zero.value<f64, partial = [dp]>, !zero.value<f64>
  zero.return []
}

// -----

// reduce_c1: #7981 before there are buffers, a gradient of one backward pass only.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp, micro]>) {
  // expected-error@+1 {{operand is still partial over 'micro': sum it over the backward passes first}}
  %r = zero.reduce %a : !zero.value<f64, partial = [dp, micro]>
  zero.return []
}

// -----

// reduce_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, varying = [dp]>) {
  // expected-error@+1 {{operand is varying and no addend}}
  %r = zero.reduce %a : !zero.value<f64, varying = [dp]>
  zero.return []
}

// -----

// step_c1
// expected-error@+1 {{mesh @m is not a zero.mesh of this module}}
zero.step @s on @m normalize() () {
  zero.return []
}

// -----

// step_c2
// expected-note@+1 {{axes are declared here}}
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{normalize names 'data', which is neither accumulation, tokens, loss_scale nor an axis of mesh @m}}
zero.step @s on @m normalize(data : -1) () {
  zero.return []
}

// -----

// step_c3
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{argument 0 must be an f64 scalar, got '!zero.value<f32>'}}
zero.step @s on @m normalize() (%lr: !zero.value<f32>) {
  zero.return []
}

// -----

// step_c4
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%lr: !zero.value<f64>) {
  // expected-error@+1 {{block with no terminator}}
  %r = zero.sqrt %lr : !zero.value<f64>
}

// -----

// step_c5: a gradient that reaches no update.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
// expected-error@+1 {{gradient of @w arrives and is never updated}}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// step_c5: two updates of one parameter.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.group @h [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  // expected-note@+1 {{first updated here}}
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  // expected-error@+1 {{updates @w a second time}}
  zero.update @h with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}

// -----

// return_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{has 1 value and 2 names}}
  zero.return [a, b] %a : !zero.value<f64>
}

// -----

// return_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 1]>) {
  // expected-error@+1 {{operand is still scaled by (dp : 1)}}
  zero.return [a] %a : !zero.value<f64, scaled = [dp : 1]>
}

// -----

// micro_batches_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  %g = zero.micro_batches in f64 {
    // expected-error@+1 {{yields a value that is not partial over 'micro' and would be counted once per backward pass: '!zero.value<f64>'}}
    zero.yield %a : !zero.value<f64>
  }
  zero.return []
}

// -----

// micro_batches_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  // expected-error@+1 {{sums in 'bf16', which does not hold every number of the 'f32' that is yielded}}
  %g = zero.micro_batches in bf16 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{source @w is not a zero.parameter or zero.bucket of this module}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c2
zero.mesh @m <["dp" = 2]>
// expected-note@+1 {{@w is declared here}}
zero.parameter @w : 9xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must have its shape, got '!zero.value<8xf32, partial = [dp, micro]>', expected '!zero.value<9xf32, partial = [dp, micro]>'}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be partial over "dp", or said to be 'replicated' there, got '!zero.value<8xf32, partial = [micro]>', expected '!zero.value<8xf32, partial = [dp, micro]>'}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [micro]>
    zero.yield %d : !zero.value<8xf32, partial = [micro]>
  }
  zero.return []
}

// -----

// backward_c4: the caller divided by the number of backward passes and the step says
// nothing of it.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize(dp : -1) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be scaled by prescaled / normalize = (accumulation : -1, dp : 1), got '!zero.value<8xf32, partial = [dp, micro]>', expected '!zero.value<8xf32, partial = [dp, micro], scaled = [accumulation : -1, dp : 1]>'}}
    %d = zero.backward(@w) prescaled(accumulation : -1) : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// norm_c1: the norm of what is not reduced (and would be counted per rank).
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand must be reduced, got partial over 'dp'}}
  %n = zero.norm %a : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// clip_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, scaled = [dp : 1]>, %n: !zero.value<f64>) {
  // expected-error@+1 {{operand is still scaled by (dp : 1)}}
  %c = zero.clip %a by %n max 1.0 : !zero.value<f64, scaled = [dp : 1]> by !zero.value<f64>
  zero.return []
}

// -----

// clip_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>, %n: !zero.value<f64>) {
  // expected-error@+1 {{max must be positive, got 0}}
  %c = zero.clip %a by %n max 0.0 : !zero.value<f64> by !zero.value<f64>
  zero.return []
}

// -----

// clip_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-note@+1 {{got this value}}
  %n = zero.norm %a : !zero.value<f64>
  // expected-error@+1 {{max must be a constant or an argument of the step, which apply checks to be positive}}
  %c = zero.clip %a by %n max %n : !zero.value<f64> by !zero.value<f64>
  zero.return []
}

// -----

// clip_c2
zero.mesh @m <["dp" = 2]>
// expected-note@+1 {{prior use here}}
zero.step @s on @m normalize() (%a: !zero.value<f64>, %m: !zero.value<f64, partial = [dp]>) {
  %n = zero.norm %a : !zero.value<f64>
  // expected-error@+1 {{use of value '%m' expects different type than prior uses: '!zero.value<f64>' vs '!zero.value<f64, partial = [dp]>'}}
  %c = zero.clip %a by %n max %m : !zero.value<f64> by !zero.value<f64>
  zero.return []
}

// -----

// clip_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>, %m: !zero.value<f64>) {
  // expected-error@+1 {{needs a max that is either a constant or an argument of the step}}
  %c = "zero.clip"(%a, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!zero.value<f64>, !zero.value<f64>) -> !zero.value<f64>
  zero.return []
}

// -----

// clip_coefficient_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%n: !zero.value<f64>, %m: !zero.value<f64>) {
  // expected-error@+1 {{needs a max that is either a constant or an argument of the step}}
  %c = "zero.clip_coefficient"(%n, %m) <{constant_max = 1.0 : f64}> : (!zero.value<f64>, !zero.value<f64>) -> !zero.value<f64>
  zero.return []
}
