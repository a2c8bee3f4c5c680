// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An optimizer that reads its state in a narrower type than that of the state.

zero.mesh @cluster <["dp" = 2]>
zero.parameter @a : 8xf32 optional
zero.parameter @b : 8xf32
zero.group @ga [@a] absent skip
zero.group @gb [@b]
zero.optimizer @o hyper [lr] counters [] state [m] {
^prepare(%lr: f64):
  %n = arith.negf %lr : f64
  zero.yield %n : f64
} update {
^update(%g: f32, %p: f32, %m: f32, %n: f32):
  %t = arith.truncf %m : f32 to bf16
  %e = arith.extf %t : bf16 to f32
  %m1 = arith.addf %g, %e : f32
  %p1 = math.fma %m1, %n, %p : f32
  zero.yield %p1, %m1 : f32, f32
}
zero.step @train on @cluster normalize(dp : -1) (%lr: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@a, @b) prescaled()
        : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>, !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1
        : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>, !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1
      : !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>, !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>
  zero.update @ga with @o(%r#0) hyper(lr = %lr) : (!zero.value<8xf32>), (!zero.value<f64>)
  zero.update @gb with @o(%r#1) hyper(lr = %lr) : (!zero.value<8xf32>), (!zero.value<f64>)
  zero.return []
}
