// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step that every case of the known bugs gets wrong: two parameters, one of them
// optional, Adam with momentum and weight decay, clipped to norm 1, two ranks.

zero.mesh @cluster <["dp" = 2]>

zero.parameter @w : 70xbf16
zero.parameter @u : 80xbf16 optional

zero.group @decay [@w]
zero.group @no_decay [@u]

zero.optimizer @adam hyper [lr, wd] counters [beta1_t = 1.0] state [m, v] {
^prepare(%lr: f64, %wd: f64, %b1t: f64):
  %one = arith.constant 1.0 : f64
  %beta1 = arith.constant 0.75 : f64
  %b1n = arith.mulf %b1t, %beta1 : f64
  %c1 = arith.subf %one, %b1n : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  zero.yield %b1n, %step, %keep : f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %step: f32, %keep: f32):
  %beta = arith.constant 0.75 : f32
  %rest = arith.constant 0.25 : f32
  %eps = arith.constant 1.0e-8 : f32
  %m0 = arith.mulf %m, %beta : f32
  %m1 = math.fma %g, %rest, %m0 : f32
  %g2 = arith.mulf %g, %g : f32
  %v0 = arith.mulf %v, %beta : f32
  %v1 = math.fma %g2, %rest, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = arith.addf %r, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %q, %step, %p0 : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}

zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@w, @u) prescaled(accumulation : -1)
        : !zero.value<70xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<80xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1
        : !zero.value<70xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<80xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1
      : !zero.value<70xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<80xf32, partial = [dp], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1 : !zero.value<70xf32>, !zero.value<80xf32>
  %c:2 = zero.clip %r#0, %r#1 by %norm max 1.0
      : !zero.value<70xf32>, !zero.value<80xf32> by !zero.value<f64>
  zero.update @decay with @adam(%c#0) hyper(lr = %lr, wd = 0.125)
      : (!zero.value<70xf32>), (!zero.value<f64>)
  zero.update @no_decay with @adam(%c#1) hyper(lr = %lr, wd = 0.0)
      : (!zero.value<80xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
