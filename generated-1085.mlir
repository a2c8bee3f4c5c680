zero.mesh @cluster <["dp" = 7]>
zero.parameter @layer0.weight : 1xf32
zero.group @group0 [@layer0.weight]
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adam with L2 regularization: decay is part of the gradient (torch.optim.Adam).
zero.optimizer @adam hyper [lr, wd = 0.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8] counters [beta1_t = 1.0, beta2_t = 1.0] state [m, v] {
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
  %ob1 = arith.subf %one, %beta1 : f64
  %ob2 = arith.subf %one, %beta2 : f64
  zero.yield %b1n, %b2n, %wd, %step, %beta1, %ob1, %beta2, %ob2, %inv_root, %eps : f64, f64, f64, f64, f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %wd: f32, %step: f32, %beta1: f32, %ob1: f32, %beta2: f32, %ob2: f32, %inv_root: f32, %eps: f32):
  %gd = math.fma %p, %wd, %g : f32
  %m0 = arith.mulf %m, %beta1 : f32
  %m1 = math.fma %gd, %ob1, %m0 : f32
  %g2 = arith.mulf %gd, %gd : f32
  %v0 = arith.mulf %v, %beta2 : f32
  %v1 = math.fma %g2, %ob2, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = math.fma %r, %inv_root, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p1 = math.fma %q, %step, %p : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@layer0.weight) prescaled(accumulation : -1) : !zero.value<1xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<1xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.reduce %g reduce_dtype bf16 : !zero.value<1xf32, partial = [dp], scaled = [dp : 1]>
  %norm0 = zero.norm %r : !zero.value<1xf32>
  %c0 = zero.clip %r by %norm0 max 1.0 : !zero.value<1xf32> by !zero.value<f64>
  %norm1 = zero.norm %c0 : !zero.value<1xf32>
  %c1 = zero.clip %c0 by %norm1 max 1.0 : !zero.value<1xf32> by !zero.value<f64>
  %norm2 = zero.norm %c1 : !zero.value<1xf32>
  zero.update @group0 with @adam(%c1) hyper(lr = %lr, wd = 0.1) : (!zero.value<1xf32>), (!zero.value<f64>)
  zero.return [norm0, norm1, norm2] %norm0, %norm1, %norm2 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
}
