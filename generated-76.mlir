zero.mesh @cluster <["dp" = 1]>
zero.parameter @layer0.weight : 1xf32
zero.group @group0 [@layer0.weight]
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lion (Chen et al., 2023): the sign of an interpolated momentum, with decoupled
// decay. The sign of zero is zero.
zero.optimizer @lion hyper [lr, wd = 0.0, beta1 = 0.9, beta2 = 0.99] state [m] {
^prepare(%lr: f64, %wd: f64, %beta1: f64, %beta2: f64):
  %one = arith.constant 1.0 : f64
  %step = arith.negf %lr : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  %ob1 = arith.subf %one, %beta1 : f64
  %ob2 = arith.subf %one, %beta2 : f64
  zero.yield %step, %keep, %beta1, %ob1, %beta2, %ob2 : f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %step: f32, %keep: f32, %beta1: f32, %ob1: f32, %beta2: f32, %ob2: f32):
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.mulf %m, %beta1 : f32
  %c = math.fma %g, %ob1, %c0 : f32
  %unit = math.copysign %one, %c : f32
  %is_zero = arith.cmpf oeq, %c, %zero : f32
  %sign = arith.select %is_zero, %zero, %unit : f32
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %sign, %step, %p0 : f32
  %m0 = arith.mulf %m, %beta2 : f32
  %m1 = math.fma %g, %ob2, %m0 : f32
  zero.yield %p1, %m1 : f32, f32
}
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule of torch.amp.GradScaler with its defaults: half as much after a step that
// was skipped, twice as much after 2000 that were not.

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
zero.step @train on @cluster weight(accumulation : -1, dp : -1) nonfinite error (%lr: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@layer0.weight) arrives(@loss_scale : 1, accumulation : -1) : !zero.value<1xf16, partial = [dp, micro], scaled = [@loss_scale : 1, dp : 1]>
    zero.yield %d : !zero.value<1xf16, partial = [dp, micro], scaled = [@loss_scale : 1, dp : 1]>
  }
  %r = zero.reduce %g : !zero.value<1xf32, partial = [dp], scaled = [@loss_scale : 1, dp : 1]>
  %norm0 = zero.norm %r : !zero.value<1xf32>
  zero.update @group0 with @lion(%r) hyper(lr = %lr, wd = 0.1) : (!zero.value<1xf32>), (!zero.value<f64>)
  zero.return [norm0] %norm0 : !zero.value<f64>
}
