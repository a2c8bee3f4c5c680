// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD: the sum over backward passes, the mean over ranks.

zero.mesh @cluster <["dp" = 2]>
zero.parameter @w : 2x2xf32
zero.parameter @b : 2xf32
zero.group @all [@w, @b]

zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}

zero.step @train on @cluster normalize(dp : -1) (%lr: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@w, @b) prescaled()
        : !zero.value<2x2xf32, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<2xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1
        : !zero.value<2x2xf32, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<2xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1
      : !zero.value<2x2xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<2xf32, partial = [dp], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1 : !zero.value<2x2xf32>, !zero.value<2xf32>
  zero.update @all with @sgd(%r#0, %r#1) hyper(lr = %lr)
      : (!zero.value<2x2xf32>, !zero.value<2xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
