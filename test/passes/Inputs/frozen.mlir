// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adapters beside frozen matrices in two units, a unit without a trained parameter, and a
// frozen parameter of no unit.

zero.mesh @m <["dp" = 2]>
zero.parameter @embedding : 9x3xbf16 frozen
zero.parameter @base0 : 6x3xbf16 frozen
zero.parameter @adapter0 : 6xf32
zero.parameter @base1 : 7x3xbf16 frozen
zero.parameter @scale1 : 5xf32 frozen
zero.parameter @adapter1 : 6xf32
zero.parameter @head : 9x3xbf16 frozen
zero.unit @layer0 [@base0, @adapter0]
zero.unit @layer1 [@base1, @scale1, @adapter1]
zero.unit @last [@head]
zero.group @all [@adapter0, @adapter1]
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
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@adapter0, @adapter1) prescaled() : !piece, !piece
    zero.yield %d#0, %d#1 : !piece, !piece
  }
  %r:2 = zero.reduce %g#0, %g#1 : !sum, !sum
  zero.update @all with @sgd(%r#0, %r#1) hyper(lr = %lr) : (!mean, !mean), (!zero.value<f64>)
  zero.return []
}
