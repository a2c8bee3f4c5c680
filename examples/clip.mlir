// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients are clipped twice: those of each group to a norm of its own, then all of them.
// The step reports all norms, that of the clipped gradients included, and the mean loss.

zero.mesh @cluster <["dp" = 4]>

zero.parameter @embedding : 50x16xbf16
zero.parameter @weight : 33x16xbf16
zero.parameter @bias : 33xbf16

zero.group @table [@embedding]
zero.group @layer [@weight, @bias]

zero.optimizer @sgd hyper [lr, mu = 0.9] state [m] {
^prepare(%lr: f64, %mu: f64):
  %step = arith.negf %lr : f64
  zero.yield %step, %mu : f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %step: f32, %mu: f32):
  %m1 = math.fma %m, %mu, %g : f32
  %p1 = math.fma %m1, %step, %p : f32
  zero.yield %p1, %m1 : f32, f32
}

// Each rank passes the mean loss of its own micro-batches. As an addend of a sum it is
// still to be divided by the number of ranks.
zero.step @train on @cluster normalize(accumulation : -1, dp : -1)
    (%lr: !zero.value<f64>, %loss: !zero.value<f64, partial = [dp], scaled = [dp : 1]>) {
  %g:3 = zero.micro_batches in f32 {
    %d:3 = zero.backward(@embedding, @weight, @bias) prescaled(accumulation : -1)
        : !zero.value<50x16xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<33x16xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<33xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1, %d#2
        : !zero.value<50x16xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<33x16xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<33xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r:3 = zero.reduce %g#0, %g#1, %g#2
      : !zero.value<50x16xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<33x16xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<33xf32, partial = [dp], scaled = [dp : 1]>

  %of_table = zero.norm %r#0 : !zero.value<50x16xf32>
  %of_layer = zero.norm %r#1, %r#2 : !zero.value<33x16xf32>, !zero.value<33xf32>
  %e = zero.clip %r#0 by %of_table max 0.5 : !zero.value<50x16xf32> by !zero.value<f64>
  %l:2 = zero.clip %r#1, %r#2 by %of_layer max 2.0
      : !zero.value<33x16xf32>, !zero.value<33xf32> by !zero.value<f64>

  %between = zero.norm %e, %l#0, %l#1
      : !zero.value<50x16xf32>, !zero.value<33x16xf32>, !zero.value<33xf32>
  %c:3 = zero.clip %e, %l#0, %l#1 by %between max 1.0
      : !zero.value<50x16xf32>, !zero.value<33x16xf32>, !zero.value<33xf32> by !zero.value<f64>
  %clipped = zero.norm %c#0, %c#1, %c#2
      : !zero.value<50x16xf32>, !zero.value<33x16xf32>, !zero.value<33xf32>

  zero.update @table with @sgd(%c#0) hyper(lr = %lr) : (!zero.value<50x16xf32>), (!zero.value<f64>)
  zero.update @layer with @sgd(%c#1, %c#2) hyper(lr = %lr)
      : (!zero.value<33x16xf32>, !zero.value<33xf32>), (!zero.value<f64>)
  %mean = zero.reduce %loss : !zero.value<f64, partial = [dp], scaled = [dp : 1]>
  zero.return [table, layer, between, clipped, loss] %of_table, %of_layer, %between, %clipped, %mean
      : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
}
