// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics

// step_c6: nobody says how many there are.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
// expected-error@+1 {{divides by tokens, and no argument is said to be their number: write {zero.tokens} behind its type}}
zero.step @s on @m normalize(tokens : -1) (%n: !zero.value<f64, partial = [dp]>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], scaled = [tokens : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro], scaled = [tokens : 1]>
  }
  zero.return []
}

// -----

// step_c6
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{argument 0 may be {zero.tokens} or have a {zero.name = "..."}, and nothing else, got {zero.token}}}
zero.step @s on @m normalize() (%n: !zero.value<f64> {zero.token}) {
  zero.return []
}

// -----

// step_c6
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{argument 0 may be {zero.tokens} or have a {zero.name = "..."}, and nothing else, got {zero.tokens = false}}}
zero.step @s on @m normalize() (%n: !zero.value<f64> {zero.tokens = false}) {
  zero.return []
}

// -----

// step_c6
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{two arguments are {zero.tokens}}}
zero.step @s on @m normalize() (%n: !zero.value<f64> {zero.tokens}, %k: !zero.value<f64> {zero.tokens}) {
  zero.return []
}

// -----

// step_c6
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{has 1 argument, and tokens are argument 3}}
"zero.step"() <{sym_name = "s", mesh = @m, normalize = #zero.scale<>, tokens_argument = 3 : i64}> ({
^bb0(%n: !zero.value<f64>):
  zero.return []
}) : () -> ()

// -----

// step_c6: a count that is still to be divided by something is none.
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{tokens must be replicated or partial, and have no scale, got '!zero.value<f64, partial = [dp, micro]>'}}
zero.step @s on @m normalize() (%n: !zero.value<f64, partial = [dp, micro]> {zero.tokens}) {
  zero.return []
}

// -----

// factor_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() () {
  // expected-error@+1 {{needs the number of tokens as operand}}
  %f = zero.factor (tokens : -1)
  zero.return []
}

// -----

// factor_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%n: !zero.value<f64>) {
  // expected-error@+1 {{has tokens and no scale by them}}
  %f = zero.factor (dp : -1) tokens %n : !zero.value<f64>
  zero.return []
}

// -----

// factor_c1: what one rank counted is not what all did.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%n: !zero.value<f64, partial = [dp]> {zero.tokens}) {
  // expected-error@+1 {{operand must be replicated, got partial over 'dp'}}
  %f = zero.factor (tokens : -1) tokens %n : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// factor_c2
// expected-note@+1 {{axes are declared here}}
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() () {
  // expected-error@+1 {{factor names 'tp', which is neither accumulation, tokens, loss_scale nor an axis of mesh @m}}
  %f = zero.factor (tp : -1)
  zero.return []
}

// -----

// outcome_c1: so is whether there are any.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%n: !zero.value<f64, partial = [dp]>, %a: !zero.value<f64>) {
  // expected-error@+1 {{operand must be replicated, got '!zero.value<f64, partial = [dp]>'}}
  %v = zero.outcome(%a) missing %a backwards %a squared %a tokens %n ranks 2 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// outcome_c3
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{needs the sums of squares of the gradients to see whether they are finite, unless it is 'nonfinite apply'}}
  %v = zero.outcome() missing %a ranks 2 nonfinite error : !zero.value<f64>
  zero.return []
}

// -----

// outcome_c2
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  // expected-error@+1 {{needs missing, backwards with squared or neither, and tokens at most, got 0, 1, 1 and 1 of them}}
  %v = "zero.outcome"(%a, %a, %a, %a) <{ranks = 2 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 1, 1>}> : (!zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>) -> !zero.value<f64>
  zero.return []
}

// -----

// value_c4: in an attribute as in a type.
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%v: !zero.value<1xf64>) {
  // expected-error@+1 {{expected each symbol once and no exponent 0, got (dp : 2, dp : 2)}}
  %r = zero.unstack %v [#zero.scale<dp : 2, dp : 2>] : !zero.value<1xf64>
  zero.return []
}

// -----

zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{expected each symbol once and no exponent 0, got (dp : -1, dp : -1)}}
zero.step @s on @m normalize(dp : -1, dp : -1) () {
  zero.return []
}

// -----

zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{exponent must be within -8 and 8, got -1000}}
zero.step @s on @m normalize(dp : -1000) () {
  zero.return []
}

// -----

// backward_c9: tokens of all ranks, and an expert without the batches of the others.
zero.mesh @m <["edp" = 2, "ep" = 2]>
zero.parameter @w : 8xf32, on = [ep : 1]
zero.step @s on @m normalize(tokens : -1) (%n: !zero.value<f64, partial = [edp, ep]> {zero.tokens}) {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be on all ranks of "ep", whose ranks have batches of their own, or on one of them and reduced there, got}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [edp, micro], on = [ep : 1], scaled = [tokens : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [edp, micro], on = [ep : 1], scaled = [tokens : 1]>
  }
  zero.return []
}
