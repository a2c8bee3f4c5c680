// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step with gradients in f16 and a dynamic loss scale. Before each backward pass the
// caller asks for the scale (zero_rt_step_loss_scale) and multiplies its loss by it. A
// step in which some gradient is not finite is skipped on all ranks, and the scale halves.
//
// The rule is that of PyTorch's GradScaler; examples/loss_scales/ has others.
//
//   zero-prove examples/fp16.mlir --stage=2
//   zero-run examples/fp16.mlir --stage=1 --steps=8

zero.mesh @cluster <["dp" = 2]>

zero.parameter @weight : 70xf16
zero.parameter @bias : 33xf16

zero.group @all [@weight, @bias]

zero.loss_scale @loss_scale counters [scale = 65536.0, clean = 0.0] {
^update(%overflow: i1, %scale: f64, %clean: f64):
  %growth = arith.constant 2.0 : f64
  %backoff = arith.constant 0.5 : f64
  %interval = arith.constant 2000.0 : f64
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64

  %next = arith.addf %clean, %one : f64
  %isDue = arith.cmpf oeq, %next, %interval : f64
  %more = arith.mulf %scale, %growth : f64
  %grown = arith.select %isDue, %more, %scale : f64
  %counted = arith.select %isDue, %zero, %next : f64

  %less = arith.mulf %scale, %backoff : f64
  %scale1 = arith.select %overflow, %less, %grown : f64
  %clean1 = arith.select %overflow, %zero, %counted : f64
  zero.yield %scale1, %clean1 : f64, f64
}

zero.optimizer @sgd hyper [lr, momentum = 0.875] state [momentum_buffer] {
^prepare(%lr: f64, %momentum: f64):
  %step = arith.negf %lr : f64
  zero.yield %step, %momentum : f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %momentum: f32):
  %b1 = math.fma %b, %momentum, %g : f32
  %p1 = math.fma %b1, %step, %p : f32
  zero.yield %p1, %b1 : f32, f32
}

zero.step @train on @cluster normalize(accumulation : -1, dp : -1) loss_scale @loss_scale (%lr: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@weight, @bias) prescaled(loss_scale : 1, accumulation : -1)
        : !zero.value<70xf16, partial = [dp, micro], scaled = [dp : 1, loss_scale : 1]>, !zero.value<33xf16, partial = [dp, micro], scaled = [dp : 1, loss_scale : 1]>
    zero.yield %d#0, %d#1 : !zero.value<70xf16, partial = [dp, micro], scaled = [dp : 1, loss_scale : 1]>, !zero.value<33xf16, partial = [dp, micro], scaled = [dp : 1, loss_scale : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1 : !zero.value<70xf32, partial = [dp], scaled = [dp : 1, loss_scale : 1]>, !zero.value<33xf32, partial = [dp], scaled = [dp : 1, loss_scale : 1]>
  %norm = zero.norm %r#0, %r#1 : !zero.value<70xf32>, !zero.value<33xf32>
  %c:2 = zero.clip %r#0, %r#1 by %norm max 1.0 : !zero.value<70xf32>, !zero.value<33xf32> by !zero.value<f64>
  zero.update @all with @sgd(%c#0, %c#1) hyper(lr = %lr) : (!zero.value<70xf32>, !zero.value<33xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
