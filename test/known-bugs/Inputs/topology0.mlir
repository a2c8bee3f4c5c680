// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// examples/topology.mlir as the compiler lowers it: --zero-lower="stage=0
// until=lowered".

module {
  zero.mesh @cluster<["edp" = 2, "ep" = 2, "tp" = 2]> 
  zero.parameter @bias : 40xbf16
  zero.parameter @norm_weight : 24xbf16
  zero.parameter @column : 6x16xbf16, sharded = [tp : 1]
  zero.parameter @experts : 4x16xbf16, sharded = [ep, tp : 1]
  zero.bucket @b0 : 2x2x64xf32, sharded = [ep, tp : 1] arrives bf16 [@experts] offsets [0] extents [64]
  zero.bucket @b1 : 2x128xf32, sharded = [tp] arrives bf16 [@column] offsets [0] extents [128]
  zero.bucket @b2 : 256xf32 arrives bf16 [@norm_weight] offsets [0] extents [256]
  zero.bucket @b3 : 128xf32 arrives bf16 [@bias] offsets [0] extents [128]
  zrt.program @train on @cluster batches [edp, ep] inputs [@input.0] results [norm] [@result.norm] {
    zrt.slots @arrivals [0.000000e+00, 0.000000e+00]
    zrt.slots @outcome [0.000000e+00]
    zrt.slots @input.0 [0.000000e+00] hyper "lr"
    zrt.buffer @b0.gradient : !zero.value<2x2x64xf32, sharded = [ep, tp : 1], partial = [edp], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b0.parameters : !zero.value<2x2x64xbf16, sharded = [ep, tp : 1]> role parameter in device
    zrt.buffer @b0.master : !zero.value<2x2x64xf32, sharded = [ep, tp : 1]> role state in device
    zrt.state parameter of @b0 in @b0.parameters
    zrt.state master of @b0 in @b0.master
    zrt.buffer @b0.m : !zero.value<2x2x64xf32, sharded = [ep, tp : 1]> role state in device
    zrt.state m of @b0 in @b0.m
    zrt.buffer @b0.v : !zero.value<2x2x64xf32, sharded = [ep, tp : 1]> role state in device
    zrt.state v of @b0 in @b0.v
    zrt.segments @b0.whole ends [64] rows [] scalars []
    zrt.kernel @store.bf16.f32 [read bf16, write f32] scalars 0 {
    ^bb0(%arg0: bf16):
      %0 = arith.extf %arg0 : bf16 to f32
      zrt.yield %0 : f32
    }
    zrt.kernel @add.bf16.f32 [read bf16, update f32] scalars 0 {
    ^bb0(%arg0: bf16, %arg1: f32):
      %0 = arith.extf %arg0 : bf16 to f32
      %1 = arith.addf %arg1, %0 : f32
      zrt.yield %1 : f32
    }
    zrt.bucket_table @b0 into @b0.gradient store @store.bf16.f32 add @add.bf16.f32 parameters @b0.parameters master @b0.master
    zrt.buffer @b1.gradient : !zero.value<2x128xf32, sharded = [tp], partial = [edp, ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b1.parameters : !zero.value<2x128xbf16, sharded = [tp]> role parameter in device
    zrt.buffer @b1.master : !zero.value<2x128xf32, sharded = [tp]> role state in device
    zrt.state parameter of @b1 in @b1.parameters
    zrt.state master of @b1 in @b1.master
    zrt.buffer @b1.m : !zero.value<2x128xf32, sharded = [tp]> role state in device
    zrt.state m of @b1 in @b1.m
    zrt.buffer @b1.v : !zero.value<2x128xf32, sharded = [tp]> role state in device
    zrt.state v of @b1 in @b1.v
    zrt.segments @b1.whole ends [128] rows [] scalars []
    zrt.bucket_table @b1 into @b1.gradient store @store.bf16.f32 add @add.bf16.f32 parameters @b1.parameters master @b1.master
    zrt.buffer @b2.gradient : !zero.value<256xf32, partial = [edp, ep, tp], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b2.parameters : !zero.value<256xbf16> role parameter in device
    zrt.buffer @b2.master : !zero.value<256xf32> role state in device
    zrt.state parameter of @b2 in @b2.parameters
    zrt.state master of @b2 in @b2.master
    zrt.buffer @b2.m : !zero.value<256xf32> role state in device
    zrt.state m of @b2 in @b2.m
    zrt.buffer @b2.v : !zero.value<256xf32> role state in device
    zrt.state v of @b2 in @b2.v
    zrt.segments @b2.whole ends [256] rows [] scalars []
    zrt.bucket_table @b2 into @b2.gradient store @store.bf16.f32 add @add.bf16.f32 parameters @b2.parameters master @b2.master
    zrt.buffer @b3.gradient : !zero.value<128xf32, partial = [edp, ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b3.parameters : !zero.value<128xbf16> role parameter in device
    zrt.buffer @b3.master : !zero.value<128xf32> role state in device
    zrt.state parameter of @b3 in @b3.parameters
    zrt.state master of @b3 in @b3.master
    zrt.buffer @b3.m : !zero.value<128xf32> role state in device
    zrt.state m of @b3 in @b3.m
    zrt.buffer @b3.v : !zero.value<128xf32> role state in device
    zrt.state v of @b3 in @b3.v
    zrt.segments @b3.whole ends [128] rows [] scalars []
    zrt.bucket_table @b3 into @b3.gradient store @store.bf16.f32 add @add.bf16.f32 parameters @b3.parameters master @b3.master
    zrt.scalars @scalars {
      %cst = arith.constant 1.000000e+00 : f64
      %cst_0 = arith.constant 2.000000e+00 : f64
      %0 = arith.mulf %cst, %cst_0 : f64
      %1 = arith.mulf %0, %cst_0 : f64
      %2 = arith.divf %cst, %1 : f64
      zrt.store_slot %2, @scalar[0]
      %3 = zrt.load_slot @sums[0]
      %4 = zrt.load_slot @sums_1[0]
      %5 = zrt.load_slot @sums_3[0]
      %6 = zrt.load_slot @sums_3[1]
      %7 = arith.addf %5, %6 : f64
      zrt.store_slot %7, @scalar_4[0]
      %8 = zrt.load_slot @arrivals[0]
      %9 = arith.mulf %8, %8 : f64
      zrt.store_slot %3, @statistics[0]
      zrt.store_slot %4, @statistics[1]
      %10 = zrt.load_slot @arrivals[0]
      zrt.store_slot %10, @statistics[2]
      zrt.store_slot %9, @statistics[3]
      %11 = zrt.load_slot @arrivals[1]
      zrt.store_slot %11, @statistics[4]
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
    zrt.slots @sums_3 [0.000000e+00, 0.000000e+00]
    zrt.slots @scalar_4 [0.000000e+00]
    zrt.slots @statistics [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.scalars @scalars_6 {
      %0 = zrt.load_slot @statistics[0]
      %1 = zrt.load_slot @statistics[1]
      %2 = zrt.load_slot @scalar_4[0]
      %3 = zrt.load_slot @statistics[4]
      %cst = arith.constant 0.000000e+00 : f64
      %4 = arith.subf %0, %0 : f64
      %5 = arith.cmpf une, %4, %cst : f64
      %cst_0 = arith.constant 1.000000e+00 : f64
      %6 = arith.select %5, %cst_0, %cst : f64
      %7 = arith.subf %1, %1 : f64
      %8 = arith.cmpf une, %7, %cst : f64
      %9 = arith.select %8, %cst_0, %6 : f64
      %10 = arith.subf %2, %2 : f64
      %11 = arith.cmpf une, %10, %cst : f64
      %12 = arith.select %11, %cst_0, %9 : f64
      %13 = arith.cmpf une, %3, %cst : f64
      %cst_1 = arith.constant 2.000000e+00 : f64
      %14 = arith.select %13, %cst_1, %12 : f64
      %15 = zrt.load_slot @statistics[2]
      %cst_2 = arith.constant 8.000000e+00 : f64
      %16 = zrt.load_slot @statistics[3]
      %17 = arith.mulf %cst_2, %16 : f64
      %18 = arith.mulf %15, %15 : f64
      %19 = arith.cmpf une, %17, %18 : f64
      %cst_3 = arith.constant 3.000000e+00 : f64
      %20 = arith.select %19, %cst_3, %14 : f64
      %cst_4 = arith.constant 1.250000e-01 : f64
      %21 = zrt.load_slot @input.0[0]
      %22 = zrt.load_slot @decay.counters[0]
      zrt.store_slot %22, @decay.counters.before[0]
      %cst_5 = arith.constant 7.500000e-01 : f64
      %23 = arith.mulf %22, %cst_5 : f64
      %24 = arith.subf %cst_0, %23 : f64
      %25 = arith.divf %21, %24 : f64
      %26 = arith.negf %25 : f64
      %27 = arith.mulf %21, %cst_4 : f64
      %28 = arith.subf %cst_0, %27 : f64
      %29 = arith.cmpf oeq, %20, %cst : f64
      %30 = arith.select %29, %23, %22 : f64
      zrt.store_slot %30, @decay.counters[0]
      %31 = zrt.load_slot @no_decay.counters[0]
      zrt.store_slot %31, @no_decay.counters.before[0]
      %32 = arith.mulf %31, %cst_5 : f64
      %33 = arith.subf %cst_0, %32 : f64
      %34 = arith.divf %21, %33 : f64
      %35 = arith.negf %34 : f64
      %36 = arith.mulf %21, %cst : f64
      %37 = arith.subf %cst_0, %36 : f64
      %38 = arith.select %29, %32, %31 : f64
      zrt.store_slot %38, @no_decay.counters[0]
      %39 = arith.addf %0, %1 : f64
      %40 = arith.addf %39, %2 : f64
      %41 = math.sqrt %40 : f64
      %42 = zrt.load_slot @scalar[0]
      %43 = arith.mulf %41, %42 : f64
      %cst_6 = arith.constant 9.9999999999999995E-7 : f64
      %44 = arith.addf %43, %cst_6 : f64
      %45 = arith.divf %cst_0, %44 : f64
      %46 = arith.minimumf %cst_0, %45 : f64
      %47 = arith.mulf %42, %46 : f64
      zrt.store_slot %43, @result.norm[0]
      zrt.store_slot %20, @outcome[0]
      zrt.store_slot %20, @row[0]
      zrt.store_slot %47, @row[1]
      zrt.store_slot %26, @row[2]
      zrt.store_slot %28, @row[3]
      zrt.store_slot %20, @row_20[0]
      zrt.store_slot %47, @row_20[1]
      zrt.store_slot %35, @row_20[2]
      zrt.store_slot %37, @row_20[3]
      zrt.yield
    }
    zrt.slots @decay.counters [1.000000e+00]
    zrt.scalar_state "decay.beta1_t" in @decay.counters[0]
    zrt.slots @decay.counters.before [0.000000e+00]
    zrt.slots @no_decay.counters [1.000000e+00]
    zrt.scalar_state "no_decay.beta1_t" in @no_decay.counters[0]
    zrt.slots @no_decay.counters.before [0.000000e+00]
    zrt.slots @result.norm [0.000000e+00]
    zrt.slots @row [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.slots @row_20 [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.segments @b0.groups ends [64] rows [0] scalars [@row]
    zrt.kernel @update.adam.f32.bf16 [read f32, update f32, update f32, update f32, write bf16] scalars 4 predicated {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64):
      %0 = arith.truncf %arg5 : f64 to f32
      %1 = arith.mulf %arg0, %0 : f32
      %2 = arith.truncf %arg6 : f64 to f32
      %3 = arith.truncf %arg7 : f64 to f32
      %cst = arith.constant 7.500000e-01 : f32
      %cst_0 = arith.constant 2.500000e-01 : f32
      %cst_1 = arith.constant 9.99999993E-9 : f32
      %4 = arith.mulf %arg2, %cst : f32
      %5 = math.fma %1, %cst_0, %4 : f32
      %6 = arith.mulf %1, %1 : f32
      %7 = arith.mulf %arg3, %cst : f32
      %8 = math.fma %6, %cst_0, %7 : f32
      %9 = math.sqrt %8 : f32
      %10 = arith.addf %9, %cst_1 : f32
      %11 = arith.divf %5, %10 : f32
      %12 = arith.mulf %arg1, %3 : f32
      %13 = math.fma %11, %2, %12 : f32
      %14 = arith.truncf %13 : f32 to bf16
      zrt.yield %13, %5, %8, %14 : f32, f32, f32, bf16
    }
    zrt.segments @b1.groups ends [128] rows [0] scalars [@row]
    zrt.segments @b2.groups ends [256] rows [0] scalars [@row_20]
    zrt.segments @b3.groups ends [128] rows [0] scalars [@row_20]
    zrt.scalars @restore {
      %0 = zrt.load_slot @no_decay.counters.before[0]
      zrt.store_slot %0, @no_decay.counters[0]
      %1 = zrt.load_slot @decay.counters.before[0]
      zrt.store_slot %1, @decay.counters[0]
      zrt.yield
    }
    zrt.handler @arrive_first {
      zrt.pack
    }
    zrt.handler @arrive_next {
      zrt.pack accumulate
    }
    zrt.handler @close_first {
      zrt.fill_missing @b0
      zrt.fill_missing @b1
      zrt.fill_missing @b2
      zrt.fill_missing @b3
    }
    zrt.accumulator of @b0 in @b0.gradient prescaled (accumulation : -1)
    zrt.accumulator of @b1 in @b1.gradient prescaled (accumulation : -1)
    zrt.accumulator of @b2 in @b2.gradient prescaled (accumulation : -1)
    zrt.accumulator of @b3 in @b3.gradient prescaled (accumulation : -1)
    zrt.handler @begin_next {
      zrt.set_role @b0.gradient as accumulator
      zrt.set_role @b1.gradient as accumulator
      zrt.set_role @b2.gradient as accumulator
      zrt.set_role @b3.gradient as accumulator
    }
    zrt.handler @reset {
      zrt.set_role @b0.gradient as gradient
      zrt.set_role @b1.gradient as gradient
      zrt.set_role @b2.gradient as gradient
      zrt.set_role @b3.gradient as gradient
    }
    zrt.handler @reduce {
      zrt.all_reduce @b0.gradient over [edp]
      zrt.all_reduce @b1.gradient over [edp, ep]
      zrt.all_reduce @b2.gradient over [edp, ep, tp]
      zrt.all_reduce @b3.gradient over [edp, ep]
    }
    zrt.handler @b0.close_only {
      zrt.fill_missing @b0
      zrt.all_reduce @b0.gradient over [edp]
    }
    zrt.handler @b1.close_only {
      zrt.fill_missing @b1
      zrt.all_reduce @b1.gradient over [edp, ep]
    }
    zrt.handler @b2.close_only {
      zrt.fill_missing @b2
      zrt.all_reduce @b2.gradient over [edp, ep, tp]
    }
    zrt.handler @b3.close_only {
      zrt.fill_missing @b3
      zrt.all_reduce @b3.gradient over [edp, ep]
    }
    zrt.sequence @only [@b0, @b1, @b2, @b3] run [@b0.close_only, @b1.close_only, @b2.close_only, @b3.close_only]
    zrt.handler @b0.close_last {
      zrt.all_reduce @b0.gradient over [edp]
    }
    zrt.handler @b1.close_last {
      zrt.all_reduce @b1.gradient over [edp, ep]
    }
    zrt.handler @b2.close_last {
      zrt.all_reduce @b2.gradient over [edp, ep, tp]
    }
    zrt.handler @b3.close_last {
      zrt.all_reduce @b3.gradient over [edp, ep]
    }
    zrt.sequence @last [@b0, @b1, @b2, @b3] run [@b0.close_last, @b1.close_last, @b2.close_last, @b3.close_last]
    zrt.handler @reopen {
      zrt.keep_on_root @b0.gradient over [edp]
      zrt.keep_on_root @b1.gradient over [edp, ep]
      zrt.keep_on_root @b2.gradient over [edp, ep, tp]
      zrt.keep_on_root @b3.gradient over [edp, ep]
    }
    zrt.handler @measure {
      zrt.count_arrivals to @arrivals
      zrt.launch @sum_squares.f32 [@b0.gradient] over @b0.whole sum @sums at 0
      zrt.launch @sum_squares.f32 [@b1.gradient] over @b1.whole sum @sums_1 at 0
      zrt.launch @sum_squares.f32 [@b2.gradient] over @b2.whole sum @sums_3 at 0
      zrt.launch @sum_squares.f32 [@b3.gradient] over @b3.whole sum @sums_3 at 1
      zrt.run_scalars @scalars
      zrt.count_replicated_once @statistics[0] over [edp]
      zrt.count_replicated_once @statistics[1] over [ep, edp]
      zrt.all_reduce_scalars @statistics over [ep, tp, edp]
      zrt.run_scalars @scalars_6
    }
    zrt.handler @update {
      zrt.launch @update.adam.f32.bf16 [@b0.gradient, @b0.master, @b0.m, @b0.v, @b0.parameters] over @b0.groups
      zrt.launch @update.adam.f32.bf16 [@b1.gradient, @b1.master, @b1.m, @b1.v, @b1.parameters] over @b1.groups
      zrt.launch @update.adam.f32.bf16 [@b2.gradient, @b2.master, @b2.m, @b2.v, @b2.parameters] over @b2.groups
      zrt.launch @update.adam.f32.bf16 [@b3.gradient, @b3.master, @b3.m, @b3.v, @b3.parameters] over @b3.groups
    }
    zrt.handler @commit {
      zrt.commit @outcome
    }
    zrt.handler @undo {
      zrt.run_scalars @restore
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
    zrt.transition measured on discard to idle run [@undo, @reset]
  }
}

