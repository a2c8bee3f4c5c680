// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages over two axes: @a and @b share some ranks, @c has none with either.

zero.mesh @cluster <["x" = 2, "y" = 2, "dp" = 2]>
zero.parameter @a : 40x6xf32, on = [x : 0]
zero.parameter @b : 40x6xf32, on = [y : 0]
zero.parameter @c : 40x6xf32, on = [x : 1, y : 1]
zero.group @all [@a, @b, @c]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g:3 = zero.micro_batches in f32 {
    %d:3 = zero.backward(@a, @b, @c) prescaled(accumulation : -1)  : !zero.value<40x6xf32, partial = [dp, micro, y], on = [x : 0], scaled = [dp : 1]>, !zero.value<40x6xf32, partial = [dp, micro, x], on = [y : 0], scaled = [dp : 1]>, !zero.value<40x6xf32, partial = [dp, micro], on = [x : 1, y : 1], scaled = [dp : 1]>
    zero.yield %d#0, %d#1, %d#2 : !zero.value<40x6xf32, partial = [dp, micro, y], on = [x : 0], scaled = [dp : 1]>, !zero.value<40x6xf32, partial = [dp, micro, x], on = [y : 0], scaled = [dp : 1]>, !zero.value<40x6xf32, partial = [dp, micro], on = [x : 1, y : 1], scaled = [dp : 1]>
  }
  %r:3 = zero.reduce %g#0, %g#1, %g#2 : !zero.value<40x6xf32, partial = [dp, y], on = [x : 0], scaled = [dp : 1]>, !zero.value<40x6xf32, partial = [dp, x], on = [y : 0], scaled = [dp : 1]>, !zero.value<40x6xf32, partial = [dp], on = [x : 1, y : 1], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1, %r#2 : !zero.value<40x6xf32, on = [x : 0]>, !zero.value<40x6xf32, on = [y : 0]>, !zero.value<40x6xf32, on = [x : 1, y : 1]>
  %c:3 = zero.clip %r#0, %r#1, %r#2 by %norm max 1.0 : !zero.value<40x6xf32, on = [x : 0]>, !zero.value<40x6xf32, on = [y : 0]>, !zero.value<40x6xf32, on = [x : 1, y : 1]> by !zero.value<f64>
  zero.update @all with @sgd(%c#0, %c#1, %c#2) hyper(lr = %lr) : (!zero.value<40x6xf32, on = [x : 0]>, !zero.value<40x6xf32, on = [y : 0]>, !zero.value<40x6xf32, on = [x : 1, y : 1]>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
