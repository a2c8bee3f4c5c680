// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of collectives.mlir, scalars stacked.

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
    %16 = zero.backward(@b0) prescaled (accumulation : -1) : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %16 : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %1 = zero.reduce_scatter %0 over [dp] : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]>
  %2 = zero.factor (dp : -1)
  %3 = zero.sum_squares %1 : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
  %backwards, %squared, %missing = zero.arrival_count over [dp]
  %4 = zero.stack %3, %backwards, %squared, %missing : !zero.value<f64, partial = [dp], scaled = [dp : 2]>, !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
  %5 = zero.all_reduce %4 over [dp] : !zero.value<4xf64, partial = [dp]>
  %6:4 = zero.unstack %5 [#zero.scale<dp : 2>, #zero.scale<>, #zero.scale<>, #zero.scale<>] : !zero.value<4xf64>
  %7 = zero.outcome(%6#0) missing %6#3 backwards %6#1 squared %6#2 ranks 2 : !zero.value<f64, scaled = [dp : 2]>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %8 = zero.prepare @all with @sgd(%arg0) when %7 yields 1 : (!zero.value<f64>), !zero.value<f64>
  %9 = zero.sqrt %6#0 : !zero.value<f64, scaled = [dp : 2]>
  %10 = zero.scale %9 by %2 : !zero.value<f64, scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
  %11 = zero.clip_coefficient %10 max 1.000000e+00  : !zero.value<f64>
  %12 = zero.scale %2 by %11 : !zero.value<f64, scaled = [dp : -1]> by !zero.value<f64>
  %13 = zero.scale %1 by %12 : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
  %14 = zero.update_bucket @b0 with @sgd(%13) when %7 rows(%8) row_of [0, 0] : f32, !zero.value<128xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>)
  %15 = zero.all_gather %14 over [dp] : !zero.value<128xf32, sharded = [dp]>
  zero.assign @b0, %15 : !zero.value<128xf32>
  zero.return [norm] %10 : !zero.value<f64>
}
