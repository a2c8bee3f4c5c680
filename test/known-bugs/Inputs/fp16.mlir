// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// examples/fp16.mlir as the compiler lowers it: --zero-lower="stage=1
// until=lowered".

module {
  zero.mesh @cluster<["dp" = 2]> 
  zero.parameter @weight : 70xf16
  zero.parameter @bias : 33xf16
  zero.loss_scale @loss_scale counters [scale = 6.553600e+04, clean = 0.000000e+00] {
  ^bb0(%arg0: i1, %arg1: f64, %arg2: f64):
    %cst = arith.constant 2.000000e+00 : f64
    %cst_0 = arith.constant 5.000000e-01 : f64
    %cst_1 = arith.constant 2.000000e+03 : f64
    %cst_2 = arith.constant 0.000000e+00 : f64
    %cst_3 = arith.constant 1.000000e+00 : f64
    %0 = arith.addf %arg2, %cst_3 : f64
    %1 = arith.cmpf oeq, %0, %cst_1 : f64
    %2 = arith.mulf %arg1, %cst : f64
    %3 = arith.select %1, %2, %arg1 : f64
    %4 = arith.select %1, %cst_2, %0 : f64
    %5 = arith.mulf %arg1, %cst_0 : f64
    %6 = arith.select %arg0, %5, %3 : f64
    %7 = arith.select %arg0, %cst_2, %4 : f64
    zero.yield %6, %7 : f64, f64
  }
  zero.bucket @b0 : 192xf32 arrives f16 [@bias, @weight] offsets [0, 64] extents [64, 128]
  zrt.program @train on @cluster loss_scale @loss_scale batches [dp] inputs [@input.0] results [norm] [@result.norm] {
    zrt.slots @arrivals [0.000000e+00, 0.000000e+00]
    zrt.slots @outcome [0.000000e+00]
    zrt.slots @input.0 [0.000000e+00] hyper "lr"
    zrt.buffer @b0.gradient : !zero.value<192xf32, partial = [dp], scaled = [dp : 1, loss_scale : 1]> role gradient in device
    zrt.buffer @b0.reduced : !zero.value<192xf32, sharded = [dp], scaled = [dp : 1, loss_scale : 1]> role gradient in device
    zrt.buffer @b0.parameters : !zero.value<192xf16> role parameter in device
    zrt.buffer @b0.master : !zero.value<192xf32, sharded = [dp]> role state in device
    zrt.state parameter of @b0 in @b0.parameters
    zrt.state master of @b0 in @b0.master
    zrt.buffer @b0.momentum_buffer : !zero.value<192xf32, sharded = [dp]> role state in device
    zrt.state momentum_buffer of @b0 in @b0.momentum_buffer
    zrt.segments @b0.whole ends [192] rows [] scalars []
    zrt.kernel @store.f16.f32 [read f16, write f32] scalars 0 {
    ^bb0(%arg0: f16):
      %0 = arith.extf %arg0 : f16 to f32
      zrt.yield %0 : f32
    }
    zrt.kernel @add.f16.f32 [read f16, update f32] scalars 0 {
    ^bb0(%arg0: f16, %arg1: f32):
      %0 = arith.extf %arg0 : f16 to f32
      %1 = arith.addf %arg1, %0 : f32
      zrt.yield %1 : f32
    }
    zrt.bucket_table @b0 into @b0.gradient store @store.f16.f32 add @add.f16.f32 parameters @b0.parameters master @b0.master
    zrt.slots @loss_scale.counters [6.553600e+04, 0.000000e+00] is "loss_scale"
    zrt.scalar_state "loss_scale.scale" in @loss_scale.counters[0] changes_on_skip
    zrt.scalar_state "loss_scale.clean" in @loss_scale.counters[1] changes_on_skip
    zrt.scalars @scalars {
      %0 = zrt.load_slot @loss_scale.counters[0]
      %cst = arith.constant 1.000000e+00 : f64
      %cst_0 = arith.constant 2.000000e+00 : f64
      %1 = arith.mulf %cst, %cst_0 : f64
      %2 = arith.mulf %1, %0 : f64
      %3 = arith.divf %cst, %2 : f64
      zrt.store_slot %3, @scalar_0[0]
      %4 = zrt.load_slot @sums[0]
      %5 = zrt.load_slot @arrivals[0]
      %6 = arith.mulf %5, %5 : f64
      zrt.store_slot %4, @statistics[0]
      %7 = zrt.load_slot @arrivals[0]
      zrt.store_slot %7, @statistics[1]
      zrt.store_slot %6, @statistics[2]
      %8 = zrt.load_slot @arrivals[1]
      zrt.store_slot %8, @statistics[3]
      zrt.yield
    }
    zrt.slots @scalar_0 [0.000000e+00]
    zrt.slots @sums [0.000000e+00]
    zrt.kernel @sum_squares.f32 [read f32] scalars 0 sums {
    ^bb0(%arg0: f32):
      %0 = arith.extf %arg0 : f32 to f64
      %1 = arith.mulf %0, %0 : f64
      zrt.yield %1 : f64
    }
    zrt.slots @statistics [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.scalars @scalars_3 {
      %0 = zrt.load_slot @statistics[0]
      %1 = zrt.load_slot @statistics[3]
      %cst = arith.constant 0.000000e+00 : f64
      %2 = arith.subf %0, %0 : f64
      %3 = arith.cmpf une, %2, %cst : f64
      %cst_0 = arith.constant 1.000000e+00 : f64
      %4 = arith.select %3, %cst_0, %cst : f64
      %5 = arith.cmpf une, %1, %cst : f64
      %cst_1 = arith.constant 2.000000e+00 : f64
      %6 = arith.select %5, %cst_1, %4 : f64
      %7 = zrt.load_slot @statistics[1]
      %8 = zrt.load_slot @statistics[2]
      %9 = arith.mulf %cst_1, %8 : f64
      %10 = arith.mulf %7, %7 : f64
      %11 = arith.cmpf une, %9, %10 : f64
      %cst_2 = arith.constant 3.000000e+00 : f64
      %12 = arith.select %11, %cst_2, %6 : f64
      %cst_3 = arith.constant 8.750000e-01 : f64
      %13 = zrt.load_slot @input.0[0]
      %14 = arith.negf %13 : f64
      %15 = zrt.load_slot @loss_scale.counters[0]
      %16 = zrt.load_slot @loss_scale.counters[1]
      zrt.store_slot %15, @loss_scale.counters.before[0]
      zrt.store_slot %16, @loss_scale.counters.before[1]
      %true = arith.constant true
      %cst_4 = arith.constant 5.000000e-01 : f64
      %cst_5 = arith.constant 2.000000e+03 : f64
      %17 = arith.addf %16, %cst_0 : f64
      %18 = arith.cmpf oeq, %17, %cst_5 : f64
      %19 = arith.mulf %15, %cst_1 : f64
      %20 = arith.select %18, %19, %15 : f64
      %21 = arith.select %18, %cst, %17 : f64
      %22 = arith.mulf %15, %cst_4 : f64
      %23 = arith.select %true, %22, %20 : f64
      %24 = arith.select %true, %cst, %21 : f64
      %cst_6 = arith.constant 2.2250738585072014E-308 : f64
      %25 = arith.cmpf ult, %23, %cst_6 : f64
      %26 = arith.select %25, %15, %23 : f64
      %cst_7 = arith.constant 1.7976931348623157E+308 : f64
      %27 = arith.cmpf ugt, %23, %cst_7 : f64
      %28 = arith.select %27, %15, %26 : f64
      %29 = arith.cmpf oeq, %12, %cst_0 : f64
      %30 = arith.select %29, %28, %15 : f64
      %31 = arith.select %29, %24, %16 : f64
      %false = arith.constant false
      %32 = arith.select %false, %22, %20 : f64
      %33 = arith.select %false, %cst, %21 : f64
      %34 = arith.cmpf ult, %32, %cst_6 : f64
      %35 = arith.select %34, %15, %32 : f64
      %36 = arith.cmpf ugt, %32, %cst_7 : f64
      %37 = arith.select %36, %15, %35 : f64
      %38 = arith.cmpf oeq, %12, %cst : f64
      %39 = arith.select %38, %37, %30 : f64
      %40 = arith.select %38, %33, %31 : f64
      zrt.store_slot %39, @loss_scale.counters[0]
      zrt.store_slot %40, @loss_scale.counters[1]
      %41 = math.sqrt %0 : f64
      %42 = zrt.load_slot @scalar_0[0]
      %43 = arith.mulf %41, %42 : f64
      %cst_8 = arith.constant 9.9999999999999995E-7 : f64
      %44 = arith.addf %43, %cst_8 : f64
      %45 = arith.divf %cst_0, %44 : f64
      %46 = arith.minimumf %cst_0, %45 : f64
      %47 = arith.mulf %42, %46 : f64
      zrt.store_slot %43, @result.norm[0]
      zrt.store_slot %12, @outcome[0]
      zrt.store_slot %12, @row[0]
      zrt.store_slot %47, @row[1]
      zrt.store_slot %14, @row[2]
      zrt.store_slot %cst_3, @row[3]
      zrt.yield
    }
    zrt.slots @loss_scale.counters.before [0.000000e+00, 0.000000e+00]
    zrt.slots @result.norm [0.000000e+00]
    zrt.slots @row [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.segments @b0.groups ends [192] rows [0] scalars [@row]
    zrt.kernel @update.sgd.f32.f16 [read f32, update f32, update f32, write f16] scalars 4 predicated {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
      %0 = arith.truncf %arg4 : f64 to f32
      %1 = arith.mulf %arg0, %0 : f32
      %2 = arith.truncf %arg5 : f64 to f32
      %3 = arith.truncf %arg6 : f64 to f32
      %4 = math.fma %arg2, %3, %1 : f32
      %5 = math.fma %4, %2, %arg1 : f32
      %6 = arith.truncf %5 : f32 to f16
      zrt.yield %5, %4, %6 : f32, f32, f16
    }
    zrt.scalars @restore {
      %0 = zrt.load_slot @loss_scale.counters.before[0]
      %1 = zrt.load_slot @loss_scale.counters.before[1]
      zrt.store_slot %0, @loss_scale.counters[0]
      zrt.store_slot %1, @loss_scale.counters[1]
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
    }
    zrt.accumulator of @b0 in @b0.gradient prescaled (accumulation : -1, loss_scale : 1)
    zrt.handler @begin_next {
      zrt.set_role @b0.gradient as accumulator
    }
    zrt.handler @reset {
      zrt.set_role @b0.gradient as gradient
    }
    zrt.handler @reduce {
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
    }
    zrt.handler @b0.close_only {
      zrt.fill_missing @b0
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
    }
    zrt.sequence @only [@b0] run [@b0.close_only]
    zrt.handler @b0.close_last {
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
    }
    zrt.sequence @last [@b0] run [@b0.close_last]
    zrt.handler @reopen {
    }
    zrt.handler @measure {
      zrt.count_arrivals to @arrivals
      zrt.launch @sum_squares.f32 [@b0.reduced] over @b0.whole own [dp] sum @sums at 0
      zrt.run_scalars @scalars
      zrt.all_reduce_scalars @statistics over [dp]
      zrt.run_scalars @scalars_3
    }
    zrt.handler @update {
      zrt.launch @update.sgd.f32.f16 [@b0.reduced, @b0.master, @b0.momentum_buffer, @b0.parameters] over @b0.groups own [dp]
      zrt.all_gather @b0.parameters over [dp]
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

