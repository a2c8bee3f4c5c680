// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two units, and a parameter of no unit.

zero.mesh @m <["dp" = 2]>
zero.parameter @embedding : 5x8xbf16
zero.parameter @w0 : 8x8xbf16
zero.parameter @bias0 : 8xbf16
zero.parameter @w1 : 8x8xbf16
zero.unit @layer0 [@w0, @bias0]
zero.unit @layer1 [@w1]
zero.group @all [@embedding, @w0, @bias0, @w1]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.step @train on @m normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g:4 = zero.micro_batches in f32 {
    %d:4 = zero.backward(@embedding, @w0, @bias0, @w1) prescaled()
        : !zero.value<5x8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>,
          !zero.value<8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>
    zero.yield %d#0, %d#1, %d#2, %d#3
        : !zero.value<5x8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>,
          !zero.value<8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [accumulation : 1, dp : 1]>
  }
  %r:4 = zero.reduce %g#0, %g#1, %g#2, %g#3
      : !zero.value<5x8xf32, partial = [dp], scaled = [accumulation : 1, dp : 1]>,
        !zero.value<8x8xf32, partial = [dp], scaled = [accumulation : 1, dp : 1]>,
        !zero.value<8xf32, partial = [dp], scaled = [accumulation : 1, dp : 1]>,
        !zero.value<8x8xf32, partial = [dp], scaled = [accumulation : 1, dp : 1]>
  %norm = zero.norm %r#0, %r#1, %r#2, %r#3
      : !zero.value<5x8xf32>, !zero.value<8x8xf32>, !zero.value<8xf32>, !zero.value<8x8xf32>
  %c:4 = zero.clip %r#0, %r#1, %r#2, %r#3 by %norm max 1.0
      : !zero.value<5x8xf32>, !zero.value<8x8xf32>, !zero.value<8xf32>, !zero.value<8x8xf32> by !zero.value<f64>
  zero.update @all with @sgd(%c#0, %c#1, %c#2, %c#3) hyper(lr = %lr)
      : (!zero.value<5x8xf32>, !zero.value<8x8xf32>, !zero.value<8xf32>, !zero.value<8x8xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
