// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// step.mlir as the compiler lowers it: --zero-lower="stage=1 offload=none
// bucket-bytes=16 until=sharded".

module {
  zero.mesh @cluster<["dp" = 2]> 
  zero.parameter @w : 70xbf16
  zero.parameter @u : 80xbf16 optional
  zero.group @decay [@w]
  zero.group @no_decay [@u]
  zero.optimizer @adam hyper [lr, wd] counters [beta1_t = 1.000000e+00] state [m, v] {
  ^bb0(%arg0: f64, %arg1: f64, %arg2: f64):
    %cst = arith.constant 1.000000e+00 : f64
    %cst_0 = arith.constant 7.500000e-01 : f64
    %0 = arith.mulf %arg2, %cst_0 : f64
    %1 = arith.subf %cst, %0 : f64
    %2 = arith.divf %arg0, %1 : f64
    %3 = arith.negf %2 : f64
    %4 = arith.mulf %arg0, %arg1 : f64
    %5 = arith.subf %cst, %4 : f64
    zero.yield %0, %3, %5 : f64, f64, f64
  } update {
  ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f32, %arg5: f32):
    %cst = arith.constant 7.500000e-01 : f32
    %cst_0 = arith.constant 2.500000e-01 : f32
    %cst_1 = arith.constant 9.99999993E-9 : f32
    %0 = arith.mulf %arg2, %cst : f32
    %1 = math.fma %arg0, %cst_0, %0 : f32
    %2 = arith.mulf %arg0, %arg0 : f32
    %3 = arith.mulf %arg3, %cst : f32
    %4 = math.fma %2, %cst_0, %3 : f32
    %5 = math.sqrt %4 : f32
    %6 = arith.addf %5, %cst_1 : f32
    %7 = arith.divf %1, %6 : f32
    %8 = arith.mulf %arg1, %arg5 : f32
    %9 = math.fma %7, %arg4, %8 : f32
    zero.yield %9, %1, %4 : f32, f32, f32
  }
  zero.bucket @b0 : 128xf32 arrives bf16 [@u] offsets [0] extents [128]
  zero.bucket @b1 : 128xf32 arrives bf16 [@w] offsets [0] extents [128]
  zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%arg0: !zero.value<f64>) {
    %0:2 = zero.micro_batches in f32 {
      %23:2 = zero.backward(@b0, @b1) prescaled (accumulation : -1) : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>, !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
      zero.yield %23#0, %23#1 : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>, !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
    }
    %1 = zero.reduce_scatter %0#0 over [dp] : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]>
    %2 = zero.factor (dp : -1)
    %3 = zero.reduce_scatter %0#1 over [dp] : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]>
    %4 = zero.sum_squares %1, %3 : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>, !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
    %backwards, %squared, %missing = zero.arrival_count over [dp]
    %5 = zero.stack %4, %backwards, %squared, %missing : !zero.value<f64, partial = [dp], scaled = [dp : 2]>, !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
    %6 = zero.all_reduce %5 over [dp] : !zero.value<4xf64, partial = [dp]>
    %7:4 = zero.unstack %6 [#zero.scale<dp : 2>, #zero.scale<>, #zero.scale<>, #zero.scale<>] : !zero.value<4xf64>
    %8 = zero.outcome(%7#0) missing %7#3 backwards %7#1 squared %7#2 ranks 2 : !zero.value<f64, scaled = [dp : 2]>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
    %9 = zero.constant 1.250000e-01
    %10:2 = zero.prepare @decay with @adam(%arg0, %9) when %8 yields 2 : (!zero.value<f64>, !zero.value<f64>), !zero.value<f64>
    %11 = zero.constant 0.000000e+00
    %12:2 = zero.prepare @no_decay with @adam(%arg0, %11) when %8 yields 2 : (!zero.value<f64>, !zero.value<f64>), !zero.value<f64>
    %13 = zero.sqrt %7#0 : !zero.value<f64, scaled = [dp : 2]>
    %14 = zero.scale %13 by %2 : !zero.value<f64, scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
    %15 = zero.clip_coefficient %14 max 1.000000e+00  : !zero.value<f64>
    %16 = zero.scale %2 by %15 : !zero.value<f64, scaled = [dp : -1]> by !zero.value<f64>
    %17 = zero.scale %1 by %16 : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
    %18 = zero.update_bucket @b0 with @adam(%17) when %8 rows(%12#0, %12#1) row_of [0] : bf16, !zero.value<128xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>, !zero.value<f64>)
    %19 = zero.all_gather %18 over [dp] : !zero.value<128xbf16, sharded = [dp]>
    zero.assign @b0, %19 : !zero.value<128xbf16>
    %20 = zero.scale %3 by %16 : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
    %21 = zero.update_bucket @b1 with @adam(%20) when %8 rows(%10#0, %10#1) row_of [0] : bf16, !zero.value<128xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>, !zero.value<f64>)
    %22 = zero.all_gather %21 over [dp] : !zero.value<128xbf16, sharded = [dp]>
    zero.assign @b1, %22 : !zero.value<128xbf16>
    zero.return [norm] %14 : !zero.value<f64>
  }
}

