// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three units of one trained parameter, of which one has a frozen one, too, and a parameter
// of no unit. A step subtracts the mean of the gradients.

zero.mesh @m <["dp" = 2]>
zero.parameter @w0 : 6xf32
zero.parameter @w1 : 6xf32
zero.parameter @w2 : 6xf32
zero.parameter @base : 5xf32 frozen
zero.parameter @bias : 6xf32
zero.unit @layer0 [@w0]
zero.unit @layer1 [@base, @w1]
zero.unit @layer2 [@w2]
zero.group @all [@w0, @w1, @w2, @bias]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
!piece = !zero.value<6xf32, partial = [dp, micro], scaled = [dp : 1]>
!sum = !zero.value<6xf32, partial = [dp], scaled = [dp : 1]>
!mean = !zero.value<6xf32>
zero.step @train on @m normalize(dp : -1) (%lr: !zero.value<f64>) {
  %g:4 = zero.micro_batches in f32 {
    %d:4 = zero.backward(@w0, @w1, @w2, @bias) prescaled() : !piece, !piece, !piece, !piece
    zero.yield %d#0, %d#1, %d#2, %d#3 : !piece, !piece, !piece, !piece
  }
  %r:4 = zero.reduce %g#0, %g#1, %g#2, %g#3 : !sum, !sum, !sum, !sum
  zero.update @all with @sgd(%r#0, %r#1, %r#2, %r#3) hyper(lr = %lr)
      : (!mean, !mean, !mean, !mean), (!zero.value<f64>)
  zero.return []
}
