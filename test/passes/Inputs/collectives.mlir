// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of laid_out.mlir with the collectives of ZeRO-1.

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
    %17 = zero.backward(@b0) prescaled (accumulation : -1) : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %17 : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %1 = zero.reduce_scatter %0 over [dp] : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]>
  %2 = zero.factor (dp : -1)
  %3 = zero.sum_squares %1 : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
  %4 = zero.all_reduce %3 over [dp] : !zero.value<f64, partial = [dp], scaled = [dp : 2]>
  %5 = zero.sqrt %4 : !zero.value<f64, scaled = [dp : 2]>
  %6 = zero.scale %5 by %2 : !zero.value<f64, scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
  %7 = zero.clip_coefficient %6 max 1.000000e+00  : !zero.value<f64>
  %8 = zero.scale %2 by %7 : !zero.value<f64, scaled = [dp : -1]> by !zero.value<f64>
  %backwards, %squared, %missing = zero.arrival_count over [dp]
  %9 = zero.all_reduce %backwards over [dp] : !zero.value<f64, partial = [dp]>
  %10 = zero.all_reduce %squared over [dp] : !zero.value<f64, partial = [dp]>
  %11 = zero.all_reduce %missing over [dp] : !zero.value<f64, partial = [dp]>
  %12 = zero.outcome(%4) missing %11 backwards %9 squared %10 ranks 2 : !zero.value<f64, scaled = [dp : 2]>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %13 = zero.prepare @all with @sgd(%arg0) when %12 yields 1 : (!zero.value<f64>), !zero.value<f64>
  %14 = zero.scale %1 by %8 : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
  %15 = zero.update_bucket @b0 with @sgd(%14) when %12 rows(%13) row_of [0, 0] : f32, !zero.value<128xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>)
  %16 = zero.all_gather %15 over [dp] : !zero.value<128xf32, sharded = [dp]>
  zero.assign @b0, %16 : !zero.value<128xf32>
  zero.return [norm] %6 : !zero.value<f64>
}
