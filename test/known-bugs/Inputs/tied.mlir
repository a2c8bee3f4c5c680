// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two pipeline stages of two ranks: the embedding is the head as well, so both have it.

zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @embedding : 8x4xf32, on = [pp : 0, pp : 1]
zero.parameter @block : 4x4xf32, on = [pp : 0]
zero.group @all [@embedding, @block]
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
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@embedding, @block) prescaled(accumulation : -1)
        : !zero.value<8x4xf32, partial = [dp, micro, pp], on = [pp : 0, pp : 1], scaled = [dp : 1]>,
          !zero.value<4x4xf32, partial = [dp, micro], on = [pp : 0], scaled = [dp : 1]>
    zero.yield %d#0, %d#1
        : !zero.value<8x4xf32, partial = [dp, micro, pp], on = [pp : 0, pp : 1], scaled = [dp : 1]>,
          !zero.value<4x4xf32, partial = [dp, micro], on = [pp : 0], scaled = [dp : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1
      : !zero.value<8x4xf32, partial = [dp, pp], on = [pp : 0, pp : 1], scaled = [dp : 1]>,
        !zero.value<4x4xf32, partial = [dp], on = [pp : 0], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1
      : !zero.value<8x4xf32, on = [pp : 0, pp : 1]>, !zero.value<4x4xf32, on = [pp : 0]>
  %c:2 = zero.clip %r#0, %r#1 by %norm max 1.0
      : !zero.value<8x4xf32, on = [pp : 0, pp : 1]>, !zero.value<4x4xf32, on = [pp : 0]> by !zero.value<f64>
  zero.update @all with @sgd(%c#0, %c#1) hyper(lr = %lr)
      : (!zero.value<8x4xf32, on = [pp : 0, pp : 1]>, !zero.value<4x4xf32, on = [pp : 0]>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
