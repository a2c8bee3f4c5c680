// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rate of the update is a product of three inputs, which rounds in f64.
zero.mesh @cluster <["dp" = 2]>
zero.parameter @w : 16x4xf64
zero.group @g [@w]
zero.optimizer @opt hyper [lr, a, b] {
^prepare(%lr: f64, %a: f64, %b: f64):
  %x = arith.mulf %lr, %a : f64
  %rate = arith.mulf %x, %b : f64
  zero.yield %rate : f64
} update {
^update(%g: f64, %p: f64, %rate: f64):
  %change = arith.mulf %g, %rate : f64
  %p1 = arith.subf %p, %change : f64
  zero.yield %p1 : f64
}
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>, %a: !zero.value<f64>, %b: !zero.value<f64>) {
  %g = zero.micro_batches in f64 {
    %d = zero.backward(@w) prescaled(accumulation : -1) : !zero.value<16x4xf64, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<16x4xf64, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.reduce %g : !zero.value<16x4xf64, partial = [dp], scaled = [dp : 1]>
  %norm = zero.norm %r : !zero.value<16x4xf64>
  zero.update @g with @opt(%r) hyper(lr = %lr, a = %a, b = %b) : (!zero.value<16x4xf64>), (!zero.value<f64>, !zero.value<f64>, !zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
