// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step whose learning rate is a constant, with a counter that the rate does not need.

zero.mesh @cluster <["dp" = 2]>
zero.parameter @layer0.weight : 8xbf16
zero.group @group0 [@layer0.weight]
zero.optimizer @counted hyper [lr, wd = 0.0, beta = 0.9] counters [bt = 1.0] state [] {
^prepare(%lr: f64, %wd: f64, %beta: f64, %bt: f64):
  %n = arith.mulf %bt, %beta : f64
  %step = arith.negf %lr : f64
  zero.yield %n, %step : f64, f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@layer0.weight) prescaled(accumulation : -1) : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>
  %norm0 = zero.norm %r : !zero.value<8xf32>
  zero.update @group0 with @counted(%r) hyper(lr = 0.125, wd = 0.1) : (!zero.value<8xf32>), ()
  zero.return [norm0] %norm0 : !zero.value<f64>
}
