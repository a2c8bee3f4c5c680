// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A learning rate that rises over 4 steps and stays: the step itself knows it, and
// a checkpoint has its counter as "lr.step". examples/schedules/ has others.

zero.mesh @cluster <["dp" = 2]>
zero.parameter @weight : 48x5xf32
zero.group @all [@weight]

zero.schedule @lr counters [step = 1.0] value {
^value(%step: f64):
  %peak = arith.constant 0.01 : f64
  %warmup = arith.constant 4.0 : f64
  %one = arith.constant 1.0 : f64
  %rise = arith.divf %step, %warmup : f64
  %share = arith.minimumf %rise, %one : f64
  %lr = arith.mulf %peak, %share : f64
  zero.yield %lr : f64
} next {
// A step that is skipped, because a gradient is not finite, does not count.
^next(%skipped: i1, %step: f64):
  %one = arith.constant 1.0 : f64
  %more = arith.addf %step, %one : f64
  %next = arith.select %skipped, %step, %more : f64
  zero.yield %next : f64
}

zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}

zero.step @train on @cluster normalize(accumulation : -1, dp : -1) () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@weight) prescaled(accumulation : -1)
        : !zero.value<48x5xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<48x5xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.reduce %g : !zero.value<48x5xf32, partial = [dp], scaled = [dp : 1]>
  %norm = zero.norm %r : !zero.value<48x5xf32>
  %lr = zero.read_schedule @lr
  zero.update @all with @sgd(%r) hyper(lr = %lr) : (!zero.value<48x5xf32>), (!zero.value<f64>)
  zero.return [norm, lr] %norm, %lr : !zero.value<f64>, !zero.value<f64>
}
