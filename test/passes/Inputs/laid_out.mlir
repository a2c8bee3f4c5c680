// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of logical.mlir, laid out in one bucket.

zero.mesh @cluster<["dp" = 2]> 
zero.parameter @w : 5x7xf32
zero.parameter @b : 7xf32 optional
zero.group @all [@w, @b]
zero.optimizer @sgd hyper [lr]   {
^bb0(%arg0: f64):
  %0 = arith.negf %arg0 : f64
  zero.yield %0 : f64
} update {
^bb0(%arg0: f32, %arg1: f32, %arg2: f32):
  %0 = math.fma %arg0, %arg2, %arg1 : f32
  zero.yield %0 : f32
}
zero.bucket @b0 : 128xf32 arrives bf16 [@b, @w] offsets [0, 32] extents [32, 96]
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%arg0: !zero.value<f64>) {
  %0 = zero.micro_batches in f32 {
    %9 = zero.backward(@b0) prescaled (accumulation : -1) : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %9 : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %1 = zero.reduce %0 : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]>
  %2 = zero.norm %1 : !zero.value<128xf32>
  %3 = zero.clip %1 by %2 max 1.000000e+00  : !zero.value<128xf32> by !zero.value<f64>
  %backwards, %squared, %missing = zero.arrival_count over [dp]
  %4:3 = zero.reduce %backwards, %squared, %missing : !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
  %5 = zero.norm %1 : !zero.value<128xf32>
  %6 = zero.outcome(%5) missing %4#2 backwards %4#0 squared %4#1 ranks 2 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %7 = zero.prepare @all with @sgd(%arg0) when %6 yields 1 : (!zero.value<f64>), !zero.value<f64>
  %8 = zero.update_bucket @b0 with @sgd(%3) when %6 rows(%7) row_of [0, 0] : f32, !zero.value<128xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b0, %8 : !zero.value<128xf32>
  zero.return [norm] %2 : !zero.value<f64>
}
