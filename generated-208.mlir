zero.mesh @cluster <["ep" = 1, "edp" = 1, "tp" = 2]>
zero.parameter @layer0.weight : 4xf32, sharded = [ep, tp]
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
// The rule of DeepSpeed's dynamic loss scale with its defaults (initial_scale_power 16,
// loss_scale_window 1000, hysteresis 2, min_loss_scale 1): twice as much where the steps
// since the last one that was skipped, the first not counted, are a multiple of the
// window; half as much after a skipped step, but not below the minimum, and not while
// hysteresis is left, of which each takes one. It is refilled when the scale grows.

zero.loss_scale @loss_scale counters [scale = 65536.0, clean = 0.0, hysteresis = 2.0] {
^update(%overflow: i1, %scale: f64, %clean: f64, %hysteresis: f64):
  %factor = arith.constant 2.0 : f64
  %window = arith.constant 1000.0 : f64
  %full = arith.constant 2.0 : f64
  %minimum = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64

  // Clean steps before this one, counted from 1 again when a window is full.
  %isDue = arith.cmpf oeq, %clean, %window : f64
  %more = arith.mulf %scale, %factor : f64
  %grown = arith.select %isDue, %more, %scale : f64
  %refilled = arith.select %isDue, %full, %hysteresis : f64
  %next = arith.addf %clean, %one : f64
  %counted = arith.select %isDue, %one, %next : f64

  %isLast = arith.cmpf oeq, %hysteresis, %one : f64
  %quotient = arith.divf %scale, %factor : f64
  %less = arith.maximumf %quotient, %minimum : f64
  %shrunk = arith.select %isLast, %less, %scale : f64
  %fewer = arith.subf %hysteresis, %one : f64
  %left = arith.select %isLast, %hysteresis, %fewer : f64

  %scale1 = arith.select %overflow, %shrunk, %grown : f64
  %clean1 = arith.select %overflow, %zero, %counted : f64
  %hysteresis1 = arith.select %overflow, %left, %refilled : f64
  zero.yield %scale1, %clean1, %hysteresis1 : f64, f64, f64
}
zero.step @train on @cluster weight(accumulation : -1, ep : -1, edp : -1) nonfinite error (%lr: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@layer0.weight) arrives(@loss_scale : 1, accumulation : -1) : !zero.value<4xf16, sharded = [ep, tp], partial = [edp, micro], presummed = [ep, tp], scaled = [@loss_scale : 1, ep : 1, edp : 1]>
    zero.yield %d : !zero.value<4xf16, sharded = [ep, tp], partial = [edp, micro], presummed = [ep, tp], scaled = [@loss_scale : 1, ep : 1, edp : 1]>
  }
  %r = zero.reduce %g : !zero.value<4xf32, sharded = [ep, tp], partial = [edp], scaled = [@loss_scale : 1, ep : 1, edp : 1]>
  %norm0 = zero.norm %r : !zero.value<4xf32, sharded = [ep, tp]>
  zero.update @group0 with @sgd(%r) hyper(lr = %lr, wd = 0.1) : (!zero.value<4xf32, sharded = [ep, tp]>), (!zero.value<f64>)
  zero.return [norm0] %norm0 : !zero.value<f64>
}
