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
  zrt.program @train on @cluster loss_scale @loss_scale inputs [@input.0] results [norm] [@result.norm] {
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
      zrt.store_slot %0, @scalar[0]
      %cst = arith.constant 1.000000e+00 : f64
      %cst_0 = arith.constant 1.000000e+00 : f64
      %cst_1 = arith.constant 2.000000e+00 : f64
      %1 = arith.mulf %cst_0, %cst_1 : f64
      %2 = arith.mulf %1, %0 : f64
      %3 = arith.divf %cst, %2 : f64
      zrt.store_slot %3, @scalar_0[0]
      %4 = zrt.load_slot @sums[0]
      zrt.store_slot %4, @scalar_1[0]
      %5 = zrt.load_slot @arrivals[0]
      %6 = arith.mulf %5, %5 : f64
      zrt.store_slot %6, @scalar_2[0]
      zrt.store_slot %4, @statistics[0]
      %7 = zrt.load_slot @arrivals[0]
      zrt.store_slot %7, @statistics[1]
      zrt.store_slot %6, @statistics[2]
      %8 = zrt.load_slot @arrivals[1]
      zrt.store_slot %8, @statistics[3]
      zrt.yield
    }
    zrt.slots @scalar [0.000000e+00]
    zrt.slots @scalar_0 [0.000000e+00]
    zrt.slots @sums [0.000000e+00]
    zrt.kernel @sum_squares.f32 [read f32] scalars 0 sums {
    ^bb0(%arg0: f32):
      %0 = arith.extf %arg0 : f32 to f64
      %1 = arith.mulf %0, %0 : f64
      zrt.yield %1 : f64
    }
    zrt.slots @scalar_1 [0.000000e+00]
    zrt.slots @scalar_2 [0.000000e+00]
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
      %cst_2 = arith.constant 2.000000e+00 : f64
      %8 = zrt.load_slot @statistics[2]
      %9 = arith.mulf %cst_2, %8 : f64
      %10 = arith.mulf %7, %7 : f64
      %11 = arith.cmpf une, %9, %10 : f64
      %cst_3 = arith.constant 3.000000e+00 : f64
      %12 = arith.select %11, %cst_3, %6 : f64
      zrt.store_slot %12, @scalar_4[0]
      %cst_4 = arith.constant 8.750000e-01 : f64
      zrt.store_slot %cst_4, @scalar_5[0]
      %13 = zrt.load_slot @input.0[0]
      %14 = arith.negf %13 : f64
      %cst_5 = arith.constant 0.000000e+00 : f64
      %15 = arith.cmpf oeq, %12, %cst_5 : f64
      zrt.store_slot %14, @scalar_6[0]
      zrt.store_slot %cst_4, @scalar_7[0]
      %16 = zrt.load_slot @loss_scale.counters[0]
      %17 = zrt.load_slot @loss_scale.counters[1]
      %true = arith.constant true
      %cst_6 = arith.constant 2.000000e+00 : f64
      %cst_7 = arith.constant 5.000000e-01 : f64
      %cst_8 = arith.constant 2.000000e+03 : f64
      %cst_9 = arith.constant 0.000000e+00 : f64
      %cst_10 = arith.constant 1.000000e+00 : f64
      %18 = arith.addf %17, %cst_10 : f64
      %19 = arith.cmpf oeq, %18, %cst_8 : f64
      %20 = arith.mulf %16, %cst_6 : f64
      %21 = arith.select %19, %20, %16 : f64
      %22 = arith.select %19, %cst_9, %18 : f64
      %23 = arith.mulf %16, %cst_7 : f64
      %24 = arith.select %true, %23, %21 : f64
      %25 = arith.select %true, %cst_9, %22 : f64
      %cst_11 = arith.constant 2.2250738585072014E-308 : f64
      %26 = arith.cmpf ult, %24, %cst_11 : f64
      %27 = arith.select %26, %16, %24 : f64
      %cst_12 = arith.constant 1.7976931348623157E+308 : f64
      %28 = arith.cmpf ugt, %24, %cst_12 : f64
      %29 = arith.select %28, %16, %27 : f64
      %cst_13 = arith.constant 1.000000e+00 : f64
      %30 = arith.cmpf oeq, %12, %cst_13 : f64
      %31 = arith.select %30, %29, %16 : f64
      %32 = arith.select %30, %25, %17 : f64
      %false = arith.constant false
      %cst_14 = arith.constant 2.000000e+00 : f64
      %cst_15 = arith.constant 5.000000e-01 : f64
      %cst_16 = arith.constant 2.000000e+03 : f64
      %cst_17 = arith.constant 0.000000e+00 : f64
      %cst_18 = arith.constant 1.000000e+00 : f64
      %33 = arith.addf %17, %cst_18 : f64
      %34 = arith.cmpf oeq, %33, %cst_16 : f64
      %35 = arith.mulf %16, %cst_14 : f64
      %36 = arith.select %34, %35, %16 : f64
      %37 = arith.select %34, %cst_17, %33 : f64
      %38 = arith.mulf %16, %cst_15 : f64
      %39 = arith.select %false, %38, %36 : f64
      %40 = arith.select %false, %cst_17, %37 : f64
      %cst_19 = arith.constant 2.2250738585072014E-308 : f64
      %41 = arith.cmpf ult, %39, %cst_19 : f64
      %42 = arith.select %41, %16, %39 : f64
      %cst_20 = arith.constant 1.7976931348623157E+308 : f64
      %43 = arith.cmpf ugt, %39, %cst_20 : f64
      %44 = arith.select %43, %16, %42 : f64
      %cst_21 = arith.constant 0.000000e+00 : f64
      %45 = arith.cmpf oeq, %12, %cst_21 : f64
      %46 = arith.select %45, %44, %31 : f64
      %47 = arith.select %45, %40, %32 : f64
      zrt.store_slot %46, @loss_scale.counters[0]
      zrt.store_slot %47, @loss_scale.counters[1]
      %48 = math.sqrt %0 : f64
      zrt.store_slot %48, @scalar_8[0]
      %49 = zrt.load_slot @scalar_0[0]
      %50 = arith.mulf %48, %49 : f64
      zrt.store_slot %50, @scalar_9[0]
      %cst_22 = arith.constant 1.000000e+00 : f64
      %cst_23 = arith.constant 9.9999999999999995E-7 : f64
      %cst_24 = arith.constant 1.000000e+00 : f64
      %51 = arith.addf %50, %cst_23 : f64
      %52 = arith.divf %cst_22, %51 : f64
      %53 = arith.minimumf %cst_24, %52 : f64
      zrt.store_slot %53, @scalar_10[0]
      %54 = arith.mulf %49, %53 : f64
      zrt.store_slot %54, @scalar_11[0]
      zrt.store_slot %50, @result.norm[0]
      zrt.store_slot %12, @outcome[0]
      zrt.store_slot %12, @row[0]
      zrt.store_slot %54, @row[1]
      zrt.store_slot %14, @row[2]
      zrt.store_slot %cst_4, @row[3]
      zrt.yield
    }
    zrt.slots @scalar_4 [0.000000e+00]
    zrt.slots @scalar_5 [0.000000e+00]
    zrt.slots @scalar_6 [0.000000e+00]
    zrt.slots @scalar_7 [0.000000e+00]
    zrt.slots @scalar_8 [0.000000e+00]
    zrt.slots @scalar_9 [0.000000e+00]
    zrt.slots @scalar_10 [0.000000e+00]
    zrt.slots @scalar_11 [0.000000e+00]
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
    zrt.handler @arrive_first {
      zrt.pack
    }
    zrt.handler @arrive_next {
      zrt.pack accumulate
    }
    zrt.handler @close_first {
      zrt.fill_missing @b0
    }
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
    zrt.handler @finish {
      zrt.count_arrivals to @arrivals
      zrt.launch @sum_squares.f32 [@b0.reduced] over @b0.whole own [dp] sum @sums at 0
      zrt.run_scalars @scalars
      zrt.all_reduce_scalars @statistics over [dp]
      zrt.run_scalars @scalars_3
      zrt.launch @update.sgd.f32.f16 [@b0.reduced, @b0.master, @b0.momentum_buffer, @b0.parameters] over @b0.groups own [dp]
      zrt.all_gather @b0.parameters over [dp]
      zrt.commit @outcome
    }
    zrt.transition idle on begin to first run []
    zrt.transition first on arrive to first run [@arrive_first]
    zrt.transition first on accumulate to between run [@close_first]
    zrt.transition first on apply to idle run [@close_first, @reduce, @finish, @reset]
    zrt.transition first on discard to idle run []
    zrt.transition between on begin to next run [@begin_next]
    zrt.transition between on apply to idle run [@reduce, @finish, @reset]
    zrt.transition between on discard to idle run [@reset]
    zrt.transition next on arrive to next run [@arrive_next]
    zrt.transition next on accumulate to between run []
    zrt.transition next on apply to idle run [@reduce, @finish, @reset]
    zrt.transition next on discard to idle run [@reset]
    zrt.transition idle on begin_last to only run []
    zrt.transition only on arrive to only run [@arrive_first] sequence @only
    zrt.transition only on accumulate to reduced run [] sequence @only
    zrt.transition only on apply to idle run [@finish, @reset] sequence @only
    zrt.transition only on discard to idle run [] sequence @only
    zrt.transition between on begin_last to last run [@begin_next]
    zrt.transition last on arrive to last run [@arrive_next] sequence @last
    zrt.transition last on accumulate to reduced run [] sequence @last
    zrt.transition last on apply to idle run [@finish, @reset] sequence @last
    zrt.transition last on discard to idle run [@reset] sequence @last
    zrt.transition reduced on begin to next run [@reopen, @begin_next]
    zrt.transition reduced on begin_last to last run [@reopen, @begin_next]
    zrt.transition reduced on apply to idle run [@finish, @reset]
    zrt.transition reduced on discard to idle run [@reset]
  }
}

