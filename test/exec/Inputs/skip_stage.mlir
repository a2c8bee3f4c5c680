// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// examples/pipeline.mlir with an embedding that a step without its gradient leaves as it is. An
// update changes parameters without gradients, too.

zero.mesh @cluster <["pp" = 3, "dp" = 2]>
// What a stage hands on, in the same type at both ends; its gradient comes back.
// The caller sends them in an order of its own, such as 1F1B.
zero.activation @embedded : tensor<?x6xf32> over pp from 0 to 1
zero.activation @hidden : tensor<?x6xf32> over pp from 1 to 2

zero.parameter @embedding : 40x6xf32, on = [pp : 0] optional
zero.parameter @block.weight : 6x6xf32, on = [pp : 1]
zero.parameter @block.norm : 6xf32, on = [pp : 1]
zero.parameter @head : 40x6xf32, on = [pp : 2]
// What stage 3 gathers for a micro-batch, and releases behind it.
zero.unit @embed [@embedding]
zero.unit @block [@block.weight, @block.norm]
zero.unit @project [@head]
zero.group @emb [@embedding] absent skip
zero.group @all [@block.weight, @block.norm, @head]

zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %hf = arith.constant 0.5 : f32
  %ph = arith.mulf %p, %hf : f32
  %p1 = math.fma %g, %step, %ph : f32
  zero.yield %p1 : f32
}

// Every stage makes a backward pass for each micro-batch; the mean is over these and
// over data-parallel ranks, and never over stages.
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g:4 = zero.micro_batches in f32 {
    %d:4 = zero.backward(@embedding, @block.weight, @block.norm, @head) prescaled(accumulation : -1)
        : !zero.value<40x6xf32, partial = [dp, micro], on = [pp : 0], scaled = [dp : 1]>,
          !zero.value<6x6xf32, partial = [dp, micro], on = [pp : 1], scaled = [dp : 1]>,
          !zero.value<6xf32, partial = [dp, micro], on = [pp : 1], scaled = [dp : 1]>,
          !zero.value<40x6xf32, partial = [dp, micro], on = [pp : 2], scaled = [dp : 1]>
    zero.yield %d#0, %d#1, %d#2, %d#3
        : !zero.value<40x6xf32, partial = [dp, micro], on = [pp : 0], scaled = [dp : 1]>,
          !zero.value<6x6xf32, partial = [dp, micro], on = [pp : 1], scaled = [dp : 1]>,
          !zero.value<6xf32, partial = [dp, micro], on = [pp : 1], scaled = [dp : 1]>,
          !zero.value<40x6xf32, partial = [dp, micro], on = [pp : 2], scaled = [dp : 1]>
  }
  %r:4 = zero.reduce %g#0, %g#1, %g#2, %g#3
      : !zero.value<40x6xf32, partial = [dp], on = [pp : 0], scaled = [dp : 1]>,
        !zero.value<6x6xf32, partial = [dp], on = [pp : 1], scaled = [dp : 1]>,
        !zero.value<6xf32, partial = [dp], on = [pp : 1], scaled = [dp : 1]>,
        !zero.value<40x6xf32, partial = [dp], on = [pp : 2], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1, %r#2, %r#3
      : !zero.value<40x6xf32, on = [pp : 0]>, !zero.value<6x6xf32, on = [pp : 1]>,
        !zero.value<6xf32, on = [pp : 1]>, !zero.value<40x6xf32, on = [pp : 2]>
  %c:4 = zero.clip %r#0, %r#1, %r#2, %r#3 by %norm max 1.0
      : !zero.value<40x6xf32, on = [pp : 0]>, !zero.value<6x6xf32, on = [pp : 1]>,
        !zero.value<6xf32, on = [pp : 1]>, !zero.value<40x6xf32, on = [pp : 2]> by !zero.value<f64>
  zero.update @emb with @sgd(%c#0) hyper(lr = %lr) : (!zero.value<40x6xf32, on = [pp : 0]>), (!zero.value<f64>)
  zero.update @all with @sgd(%c#1, %c#2, %c#3) hyper(lr = %lr)
      : (!zero.value<6x6xf32, on = [pp : 1]>,
         !zero.value<6xf32, on = [pp : 1]>, !zero.value<40x6xf32, on = [pp : 2]>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
