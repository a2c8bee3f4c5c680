// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs/tied.mlir as the compiler lowers it: --zero-lower="stage=1
// until=lowered".

module {
  zero.mesh @m<["pp" = 2, "dp" = 2]> 
  zero.parameter @embedding : 8x4xf32, on = [pp : 0, pp : 1]
  zero.parameter @block : 4x4xf32, on = [pp : 0]
  zero.bucket @b0 : 64xf32, on = [pp : 0] arrives f32 [@block] offsets [0] extents [64]
  zero.bucket @b1 : 128xf32, on = [pp : 0, pp : 1] arrives f32 [@embedding] offsets [0] extents [128]
  zrt.program @train on @m batches [dp] inputs [@input.0] results [norm] [@result.norm] {
    zrt.slots @arrivals [0.000000e+00, 0.000000e+00]
    zrt.slots @outcome [0.000000e+00]
    zrt.slots @input.0 [0.000000e+00] hyper "lr"
    zrt.buffer @b0.gradient : !zero.value<64xf32, partial = [dp], on = [pp : 0], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b0.reduced : !zero.value<64xf32, sharded = [dp], on = [pp : 0], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b0.parameters : !zero.value<64xf32, on = [pp : 0]> role parameter in device
    zrt.state parameter of @b0 in @b0.parameters
    zrt.segments @b0.whole ends [64] rows [] scalars []
    zrt.kernel @store.f32.f32 [read f32, write f32] scalars 0 {
    ^bb0(%arg0: f32):
      zrt.yield %arg0 : f32
    }
    zrt.kernel @add.f32.f32 [read f32, update f32] scalars 0 {
    ^bb0(%arg0: f32, %arg1: f32):
      %0 = arith.addf %arg1, %arg0 : f32
      zrt.yield %0 : f32
    }
    zrt.bucket_table @b0 into @b0.gradient store @store.f32.f32 add @add.f32.f32 parameters @b0.parameters
    zrt.buffer @b1.gradient : !zero.value<128xf32, partial = [dp, pp], on = [pp : 0, pp : 1], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b1.reduced : !zero.value<128xf32, sharded = [dp], partial = [pp], on = [pp : 0, pp : 1], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b1.parameters : !zero.value<128xf32, on = [pp : 0, pp : 1]> role parameter in device
    zrt.state parameter of @b1 in @b1.parameters
    zrt.segments @b1.whole ends [128] rows [] scalars []
    zrt.bucket_table @b1 into @b1.gradient store @store.f32.f32 add @add.f32.f32 parameters @b1.parameters
    zrt.scalars @scalars {
      %cst = arith.constant 1.000000e+00 : f64
      %cst_0 = arith.constant 2.000000e+00 : f64
      %0 = arith.mulf %cst, %cst_0 : f64
      %1 = arith.divf %cst, %0 : f64
      zrt.store_slot %1, @scalar[0]
      %2 = zrt.load_slot @sums[0]
      %3 = zrt.load_slot @sums_1[0]
      %4 = zrt.load_slot @arrivals[0]
      %5 = arith.mulf %4, %4 : f64
      zrt.store_slot %2, @statistics[0]
      zrt.store_slot %3, @statistics[1]
      %6 = zrt.load_slot @arrivals[0]
      zrt.store_slot %6, @statistics[2]
      zrt.store_slot %5, @statistics[3]
      %7 = zrt.load_slot @arrivals[1]
      zrt.store_slot %7, @statistics[4]
      zrt.yield
    }
    zrt.slots @scalar [0.000000e+00]
    zrt.slots @sums [0.000000e+00]
    zrt.kernel @sum_squares.f32 [read f32] scalars 0 sums {
    ^bb0(%arg0: f32):
      %0 = arith.extf %arg0 : f32 to f64
      %1 = arith.mulf %0, %0 : f64
      zrt.yield %1 : f64
    }
    zrt.slots @sums_1 [0.000000e+00]
    zrt.slots @statistics [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.scalars @scalars_4 {
      %0 = zrt.load_slot @statistics[0]
      %1 = zrt.load_slot @statistics[1]
      %2 = zrt.load_slot @statistics[4]
      %cst = arith.constant 0.000000e+00 : f64
      %3 = arith.subf %0, %0 : f64
      %4 = arith.cmpf une, %3, %cst : f64
      %cst_0 = arith.constant 1.000000e+00 : f64
      %5 = arith.select %4, %cst_0, %cst : f64
      %6 = arith.subf %1, %1 : f64
      %7 = arith.cmpf une, %6, %cst : f64
      %8 = arith.select %7, %cst_0, %5 : f64
      %9 = arith.cmpf une, %2, %cst : f64
      %cst_1 = arith.constant 2.000000e+00 : f64
      %10 = arith.select %9, %cst_1, %8 : f64
      %11 = zrt.load_slot @statistics[2]
      %cst_2 = arith.constant 4.000000e+00 : f64
      %12 = zrt.load_slot @statistics[3]
      %13 = arith.mulf %cst_2, %12 : f64
      %14 = arith.mulf %11, %11 : f64
      %15 = arith.cmpf une, %13, %14 : f64
      %cst_3 = arith.constant 3.000000e+00 : f64
      %16 = arith.select %15, %cst_3, %10 : f64
      %17 = zrt.load_slot @input.0[0]
      %18 = arith.negf %17 : f64
      %19 = arith.addf %0, %1 : f64
      %20 = math.sqrt %19 : f64
      %21 = zrt.load_slot @scalar[0]
      %22 = arith.mulf %20, %21 : f64
      %cst_4 = arith.constant 9.9999999999999995E-7 : f64
      %23 = arith.addf %22, %cst_4 : f64
      %24 = arith.divf %cst_0, %23 : f64
      %25 = arith.minimumf %cst_0, %24 : f64
      %26 = arith.mulf %21, %25 : f64
      zrt.store_slot %22, @result.norm[0]
      zrt.store_slot %16, @outcome[0]
      zrt.store_slot %16, @row[0]
      zrt.store_slot %26, @row[1]
      zrt.store_slot %18, @row[2]
      zrt.yield
    }
    zrt.slots @result.norm [0.000000e+00]
    zrt.slots @row [0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.segments @b0.groups ends [64] rows [0] scalars [@row]
    zrt.kernel @update.sgd.f32.f32 [read f32, update f32] scalars 3 predicated {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f64, %arg3: f64, %arg4: f64):
      %0 = arith.truncf %arg3 : f64 to f32
      %1 = arith.mulf %arg0, %0 : f32
      %2 = arith.truncf %arg4 : f64 to f32
      %3 = math.fma %1, %2, %arg1 : f32
      zrt.yield %3 : f32
    }
    zrt.segments @b1.groups ends [128] rows [0] scalars [@row]
    zrt.handler @arrive_first {
      zrt.pack
    }
    zrt.handler @arrive_next {
      zrt.pack accumulate
    }
    zrt.handler @close_first {
      zrt.fill_missing @b0
      zrt.fill_missing @b1
    }
    zrt.accumulator of @b0 in @b0.gradient prescaled (accumulation : -1)
    zrt.accumulator of @b1 in @b1.gradient prescaled (accumulation : -1)
    zrt.handler @begin_next {
      zrt.set_role @b0.gradient as accumulator
      zrt.set_role @b1.gradient as accumulator
    }
    zrt.handler @reset {
      zrt.set_role @b0.gradient as gradient
      zrt.set_role @b1.gradient as gradient
    }
    zrt.handler @reduce {
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
      zrt.reduce_scatter @b1.gradient to @b1.reduced over [dp]
    }
    zrt.handler @b0.close_only {
      zrt.fill_missing @b0
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
    }
    zrt.handler @b1.close_only {
      zrt.fill_missing @b1
      zrt.reduce_scatter @b1.gradient to @b1.reduced over [dp]
    }
    zrt.sequence @only [@b0, @b1] run [@b0.close_only, @b1.close_only]
    zrt.handler @b0.close_last {
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
    }
    zrt.handler @b1.close_last {
      zrt.reduce_scatter @b1.gradient to @b1.reduced over [dp]
    }
    zrt.sequence @last [@b0, @b1] run [@b0.close_last, @b1.close_last]
    zrt.handler @reopen {
    }
    zrt.handler @measure {
      zrt.count_arrivals to @arrivals
      zrt.all_reduce @b1.reduced over [pp]
      zrt.launch @sum_squares.f32 [@b0.reduced] over @b0.whole own [dp] sum @sums at 0
      zrt.launch @sum_squares.f32 [@b1.reduced] over @b1.whole own [dp] sum @sums_1 at 0 first_stage
      zrt.run_scalars @scalars
      zrt.all_reduce_scalars @statistics over [dp, pp]
      zrt.run_scalars @scalars_4
    }
    zrt.handler @update {
      zrt.launch @update.sgd.f32.f32 [@b0.reduced, @b0.parameters] over @b0.groups own [dp]
      zrt.all_gather @b0.parameters over [dp]
      zrt.launch @update.sgd.f32.f32 [@b1.reduced, @b1.parameters] over @b1.groups own [dp]
      zrt.all_gather @b1.parameters over [dp]
    }
    zrt.handler @commit {
      zrt.commit @outcome
    }
    zrt.transition idle on begin to first run []
    zrt.transition first on arrive to first run [@arrive_first]
    zrt.transition first on accumulate to between run [@close_first]
    zrt.transition first on apply to idle run [@close_first, @reduce, @measure, @update, @commit, @reset]
    zrt.transition first on measure to measured run [@close_first, @reduce, @measure, @commit]
    zrt.transition first on discard to idle run []
    zrt.transition between on begin to next run [@begin_next]
    zrt.transition between on apply to idle run [@reduce, @measure, @update, @commit, @reset]
    zrt.transition between on measure to measured run [@reduce, @measure, @commit]
    zrt.transition between on discard to idle run [@reset]
    zrt.transition next on arrive to next run [@arrive_next]
    zrt.transition next on accumulate to between run []
    zrt.transition next on apply to idle run [@reduce, @measure, @update, @commit, @reset]
    zrt.transition next on measure to measured run [@reduce, @measure, @commit]
    zrt.transition next on discard to idle run [@reset]
    zrt.transition idle on begin_last to only run []
    zrt.transition only on arrive to only run [@arrive_first] sequence @only
    zrt.transition only on accumulate to reduced run [] sequence @only
    zrt.transition only on apply to idle run [@measure, @update, @commit, @reset] sequence @only
    zrt.transition only on measure to measured run [@measure, @commit] sequence @only
    zrt.transition only on discard to idle run [] sequence @only
    zrt.transition between on begin_last to last run [@begin_next]
    zrt.transition last on arrive to last run [@arrive_next] sequence @last
    zrt.transition last on accumulate to reduced run [] sequence @last
    zrt.transition last on apply to idle run [@measure, @update, @commit, @reset] sequence @last
    zrt.transition last on measure to measured run [@measure, @commit] sequence @last
    zrt.transition last on discard to idle run [@reset] sequence @last
    zrt.transition reduced on begin to next run [@reopen, @begin_next]
    zrt.transition reduced on begin_last to last run [@reopen, @begin_next]
    zrt.transition reduced on apply to idle run [@measure, @update, @commit, @reset]
    zrt.transition reduced on measure to measured run [@measure, @commit]
    zrt.transition reduced on discard to idle run [@reset]
    zrt.transition measured on apply to idle run [@update, @reset]
    zrt.transition measured on discard to idle run [@reset]
  }
}

