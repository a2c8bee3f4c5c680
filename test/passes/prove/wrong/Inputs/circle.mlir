// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three pipeline stages, and a parameter of each two of them.

zero.mesh @cluster <["pp" = 3]>
zero.parameter @ab : 64xf32, on = [pp : 0, pp : 1]
zero.parameter @bc : 64xf32, on = [pp : 1, pp : 2]
zero.parameter @ca : 64xf32, on = [pp : 0, pp : 2]
zero.group @all [@ab, @bc, @ca]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.step @train on @cluster normalize(accumulation : -1) (%lr: !zero.value<f64>) {
  %g:3 = zero.micro_batches in f32 {
    %d:3 = zero.backward(@ab, @bc, @ca) prescaled(accumulation : -1)
        : !zero.value<64xf32, partial = [pp, micro], on = [pp : 0, pp : 1]>, !zero.value<64xf32, partial = [pp, micro], on = [pp : 1, pp : 2]>, !zero.value<64xf32, partial = [pp, micro], on = [pp : 0, pp : 2]>
    zero.yield %d#0, %d#1, %d#2 : !zero.value<64xf32, partial = [pp, micro], on = [pp : 0, pp : 1]>, !zero.value<64xf32, partial = [pp, micro], on = [pp : 1, pp : 2]>, !zero.value<64xf32, partial = [pp, micro], on = [pp : 0, pp : 2]>
  }
  %r:3 = zero.reduce %g#0, %g#1, %g#2 : !zero.value<64xf32, partial = [pp], on = [pp : 0, pp : 1]>, !zero.value<64xf32, partial = [pp], on = [pp : 1, pp : 2]>, !zero.value<64xf32, partial = [pp], on = [pp : 0, pp : 2]>
  %norm = zero.norm %r#0, %r#1, %r#2 : !zero.value<64xf32, on = [pp : 0, pp : 1]>, !zero.value<64xf32, on = [pp : 1, pp : 2]>, !zero.value<64xf32, on = [pp : 0, pp : 2]>
  zero.update @all with @sgd(%r#0, %r#1, %r#2) hyper(lr = %lr) : (!zero.value<64xf32, on = [pp : 0, pp : 1]>, !zero.value<64xf32, on = [pp : 1, pp : 2]>, !zero.value<64xf32, on = [pp : 0, pp : 2]>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
