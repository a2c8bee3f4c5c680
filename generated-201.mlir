zero.mesh @cluster <["dp" = 1]>
zero.parameter @layer0.weight : 1xf32
zero.group @group0 [@layer0.weight]
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD with momentum and L2 decay (torch.optim.SGD, dampening 0). PyTorch starts
// the momentum buffer with the first gradient; zero state does the same.
zero.optimizer @sgd hyper [lr, momentum = 0.9, wd = 0.0] state [momentum_buffer] {
^prepare(%lr: f64, %momentum: f64, %wd: f64):
  %step = arith.negf %lr : f64
  zero.yield %step, %momentum, %wd : f64, f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %momentum: f32, %wd: f32):
  %gd = math.fma %p, %wd, %g : f32
  %b1 = math.fma %b, %momentum, %gd : f32
  %p1 = math.fma %b1, %step, %p : f32
  zero.yield %p1, %b1 : f32, f32
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
  zero.update @group0 with @sgd(%r) hyper(lr = %lr, wd = 0.1) : (!zero.value<1xf32>), (!zero.value<f64>)
  zero.return [norm0] %norm0 : !zero.value<f64>
}
