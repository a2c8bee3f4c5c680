// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A two-layer network on four data-parallel ranks: AdamW with and without
// weight decay, gradients clipped to norm 1, the mean over backward passes and ranks.

zero.mesh @cluster <["dp" = 4]>

zero.parameter @fc1.weight : 64x48xbf16
zero.parameter @fc1.bias : 64xbf16
zero.parameter @fc2.weight : 10x64xbf16
zero.parameter @fc2.bias : 10xbf16 optional

zero.group @decay [@fc1.weight, @fc2.weight]
zero.group @no_decay [@fc1.bias, @fc2.bias]

// AdamW as PyTorch defines it. `counters` are the running products of the betas
// and advance on applied steps only.
zero.optimizer @adamw hyper [lr, wd, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8] counters [beta1_t = 1.0, beta2_t = 1.0] state [m, v] {
^prepare(%lr: f64, %wd: f64, %beta1: f64, %beta2: f64, %eps: f64, %b1t: f64, %b2t: f64):
  %one = arith.constant 1.0 : f64
  %b1n = arith.mulf %b1t, %beta1 : f64
  %b2n = arith.mulf %b2t, %beta2 : f64
  %c1 = arith.subf %one, %b1n : f64
  %c2 = arith.subf %one, %b2n : f64
  %root = math.sqrt %c2 : f64
  %inv_root = arith.divf %one, %root : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  %ob1 = arith.subf %one, %beta1 : f64
  %ob2 = arith.subf %one, %beta2 : f64
  zero.yield %b1n, %b2n, %keep, %step, %beta1, %ob1, %beta2, %ob2, %inv_root, %eps : f64, f64, f64, f64, f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %keep: f32, %step: f32, %beta1: f32, %ob1: f32, %beta2: f32, %ob2: f32, %inv_root: f32, %eps: f32):
  %m0 = arith.mulf %m, %beta1 : f32
  %m1 = math.fma %g, %ob1, %m0 : f32
  %g2 = arith.mulf %g, %g : f32
  %v0 = arith.mulf %v, %beta2 : f32
  %v1 = math.fma %g2, %ob2, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = math.fma %r, %inv_root, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %q, %step, %p0 : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}

zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  // Once per backward pass: 1, 4, or as many as the caller makes. A result is the sum.
  %g:4 = zero.micro_batches in f32 {
    %d:4 = zero.backward(@fc1.weight, @fc1.bias, @fc2.weight, @fc2.bias) prescaled(accumulation : -1)
        : !zero.value<64x48xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<64xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<10x64xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<10xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1, %d#2, %d#3
        : !zero.value<64x48xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<64xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<10x64xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<10xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r:4 = zero.reduce %g#0, %g#1, %g#2, %g#3
      : !zero.value<64x48xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<64xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<10x64xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<10xf32, partial = [dp], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1, %r#2, %r#3
      : !zero.value<64x48xf32>, !zero.value<64xf32>, !zero.value<10x64xf32>, !zero.value<10xf32>
  %c:4 = zero.clip %r#0, %r#1, %r#2, %r#3 by %norm max 1.0
      : !zero.value<64x48xf32>, !zero.value<64xf32>, !zero.value<10x64xf32>, !zero.value<10xf32> by !zero.value<f64>
  zero.update @decay with @adamw(%c#0, %c#2) hyper(lr = %lr, wd = 0.1)
      : (!zero.value<64x48xf32>, !zero.value<10x64xf32>), (!zero.value<f64>)
  zero.update @no_decay with @adamw(%c#1, %c#3) hyper(lr = %lr, wd = 0.0)
      : (!zero.value<64xf32>, !zero.value<10xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
