// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// step.mlir as the compiler lowers it: --zero-lower="stage=2 offload=none
// bucket-bytes=16 until=lowered".

module {
  zero.mesh @cluster<["dp" = 2]> 
  zero.parameter @w : 70xbf16
  zero.parameter @u : 80xbf16 optional
  zero.bucket @b0 : 128xf32 arrives bf16 [@u] offsets [0] extents [128]
  zero.bucket @b1 : 128xf32 arrives bf16 [@w] offsets [0] extents [128]
  zrt.program @train on @cluster batches [dp] inputs [@input.0] results [norm] [@result.norm] {
    zrt.slots @arrivals [0.000000e+00, 0.000000e+00]
    zrt.slots @outcome [0.000000e+00]
    zrt.slots @input.0 [0.000000e+00] hyper "lr"
    zrt.buffer @b0.gradient : !zero.value<128xbf16, partial = [dp], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b0.reduced : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b0.parameters : !zero.value<128xbf16> role parameter in device
    zrt.buffer @b0.master : !zero.value<128xf32, sharded = [dp]> role state in device
    zrt.state parameter of @b0 in @b0.parameters
    zrt.state master of @b0 in @b0.master
    zrt.buffer @b0.m : !zero.value<128xf32, sharded = [dp]> role state in device
    zrt.state m of @b0 in @b0.m
    zrt.buffer @b0.v : !zero.value<128xf32, sharded = [dp]> role state in device
    zrt.state v of @b0 in @b0.v
    zrt.segments @b0.whole ends [128] rows [] scalars []
    zrt.kernel @store.bf16.bf16 [read bf16, write bf16] scalars 0 {
    ^bb0(%arg0: bf16):
      zrt.yield %arg0 : bf16
    }
    zrt.kernel @add.bf16.bf16 [read bf16, update bf16] scalars 0 {
    ^bb0(%arg0: bf16, %arg1: bf16):
      %0 = arith.extf %arg1 : bf16 to f32
      %1 = arith.extf %arg0 : bf16 to f32
      %2 = arith.addf %0, %1 : f32
      %3 = arith.truncf %2 : f32 to bf16
      zrt.yield %3 : bf16
    }
    zrt.bucket_table @b0 into @b0.gradient store @store.bf16.bf16 add @add.bf16.bf16 parameters @b0.parameters master @b0.master
    zrt.buffer @b1.gradient : !zero.value<128xbf16, partial = [dp], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b1.reduced : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> role gradient in device
    zrt.buffer @b1.parameters : !zero.value<128xbf16> role parameter in device
    zrt.buffer @b1.master : !zero.value<128xf32, sharded = [dp]> role state in device
    zrt.state parameter of @b1 in @b1.parameters
    zrt.state master of @b1 in @b1.master
    zrt.buffer @b1.m : !zero.value<128xf32, sharded = [dp]> role state in device
    zrt.state m of @b1 in @b1.m
    zrt.buffer @b1.v : !zero.value<128xf32, sharded = [dp]> role state in device
    zrt.state v of @b1 in @b1.v
    zrt.segments @b1.whole ends [128] rows [] scalars []
    zrt.bucket_table @b1 into @b1.gradient store @store.bf16.bf16 add @add.bf16.bf16 parameters @b1.parameters master @b1.master
    zrt.scalars @scalars {
      %cst = arith.constant 1.000000e+00 : f64
      %cst_0 = arith.constant 2.000000e+00 : f64
      %0 = arith.mulf %cst, %cst_0 : f64
      %1 = arith.divf %cst, %0 : f64
      zrt.store_slot %1, @scalar[0]
      %2 = zrt.load_slot @sums[0]
      %3 = zrt.load_slot @sums[1]
      %4 = arith.addf %2, %3 : f64
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
    zrt.slots @scalar [0.000000e+00]
    zrt.slots @sums [0.000000e+00, 0.000000e+00]
    zrt.kernel @sum_squares.f32 [read f32] scalars 0 sums {
    ^bb0(%arg0: f32):
      %0 = arith.extf %arg0 : f32 to f64
      %1 = arith.mulf %0, %0 : f64
      zrt.yield %1 : f64
    }
    zrt.slots @statistics [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.scalars @scalars_2 {
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
      %cst_3 = arith.constant 1.250000e-01 : f64
      %13 = zrt.load_slot @input.0[0]
      %14 = zrt.load_slot @decay.counters[0]
      zrt.store_slot %14, @decay.counters.before[0]
      %cst_4 = arith.constant 7.500000e-01 : f64
      %15 = arith.mulf %14, %cst_4 : f64
      %16 = arith.subf %cst_0, %15 : f64
      %17 = arith.divf %13, %16 : f64
      %18 = arith.negf %17 : f64
      %19 = arith.mulf %13, %cst_3 : f64
      %20 = arith.subf %cst_0, %19 : f64
      %21 = arith.cmpf oeq, %12, %cst : f64
      %22 = arith.select %21, %15, %14 : f64
      zrt.store_slot %22, @decay.counters[0]
      %23 = zrt.load_slot @no_decay.counters[0]
      zrt.store_slot %23, @no_decay.counters.before[0]
      %24 = arith.mulf %23, %cst_4 : f64
      %25 = arith.subf %cst_0, %24 : f64
      %26 = arith.divf %13, %25 : f64
      %27 = arith.negf %26 : f64
      %28 = arith.mulf %13, %cst : f64
      %29 = arith.subf %cst_0, %28 : f64
      %30 = arith.select %21, %24, %23 : f64
      zrt.store_slot %30, @no_decay.counters[0]
      %31 = math.sqrt %0 : f64
      %32 = zrt.load_slot @scalar[0]
      %33 = arith.mulf %31, %32 : f64
      %cst_5 = arith.constant 9.9999999999999995E-7 : f64
      %34 = arith.addf %33, %cst_5 : f64
      %35 = arith.divf %cst_0, %34 : f64
      %36 = arith.minimumf %cst_0, %35 : f64
      %37 = arith.mulf %32, %36 : f64
      zrt.store_slot %33, @result.norm[0]
      zrt.store_slot %12, @outcome[0]
      zrt.store_slot %12, @row[0]
      zrt.store_slot %37, @row[1]
      zrt.store_slot %27, @row[2]
      zrt.store_slot %29, @row[3]
      zrt.store_slot %12, @row_14[0]
      zrt.store_slot %37, @row_14[1]
      zrt.store_slot %18, @row_14[2]
      zrt.store_slot %20, @row_14[3]
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
    zrt.slots @row_14 [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.segments @b0.groups ends [128] rows [0] scalars [@row]
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
    zrt.segments @b1.groups ends [128] rows [0] scalars [@row_14]
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
      zrt.pack
    }
    zrt.handler @b0.close_first {
      zrt.fill_missing @b0
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
    }
    zrt.handler @b1.close_first {
      zrt.fill_missing @b1
      zrt.reduce_scatter @b1.gradient to @b1.reduced over [dp]
    }
    zrt.sequence @first [@b0, @b1] run [@b0.close_first, @b1.close_first]
    zrt.handler @b0.close_next {
      zrt.fill_missing @b0
      zrt.reduce_scatter_add @b0.gradient to @b0.reduced over [dp]
    }
    zrt.handler @b1.close_next {
      zrt.fill_missing @b1
      zrt.reduce_scatter_add @b1.gradient to @b1.reduced over [dp]
    }
    zrt.sequence @next [@b0, @b1] run [@b0.close_next, @b1.close_next]
    zrt.accumulator of @b0 in @b0.reduced prescaled (accumulation : -1)
    zrt.accumulator of @b1 in @b1.reduced prescaled (accumulation : -1)
    zrt.handler @begin_next {
      zrt.set_role @b0.reduced as accumulator
      zrt.set_role @b1.reduced as accumulator
    }
    zrt.handler @reset {
      zrt.set_role @b0.reduced as gradient
      zrt.set_role @b1.reduced as gradient
    }
    zrt.handler @measure {
      zrt.count_arrivals to @arrivals
      zrt.launch @sum_squares.f32 [@b0.reduced] over @b0.whole own [dp] sum @sums at 0
      zrt.launch @sum_squares.f32 [@b1.reduced] over @b1.whole own [dp] sum @sums at 1
      zrt.run_scalars @scalars
      zrt.all_reduce_scalars @statistics over [dp]
      zrt.run_scalars @scalars_2
    }
    zrt.handler @update {
      zrt.launch @update.adam.f32.bf16 [@b0.reduced, @b0.master, @b0.m, @b0.v, @b0.parameters] over @b0.groups own [dp]
      zrt.all_gather @b0.parameters over [dp]
      zrt.launch @update.adam.f32.bf16 [@b1.reduced, @b1.master, @b1.m, @b1.v, @b1.parameters] over @b1.groups own [dp]
      zrt.all_gather @b1.parameters over [dp]
    }
    zrt.handler @commit {
      zrt.commit @outcome
    }
    zrt.handler @undo {
      zrt.run_scalars @restore
    }
    zrt.transition idle on begin to first run []
    zrt.transition first on arrive to first run [@arrive_first] sequence @first
    zrt.transition first on accumulate to between run [] sequence @first
    zrt.transition first on apply to idle run [@measure, @update, @commit, @reset] sequence @first
    zrt.transition first on measure to measured run [@measure, @commit] sequence @first
    zrt.transition first on discard to idle run [] sequence @first
    zrt.transition between on begin to next run [@begin_next]
    zrt.transition between on apply to idle run [@measure, @update, @commit, @reset]
    zrt.transition between on measure to measured run [@measure, @commit]
    zrt.transition between on discard to idle run [@reset]
    zrt.transition next on arrive to next run [@arrive_next] sequence @next
    zrt.transition next on accumulate to between run [] sequence @next
    zrt.transition next on apply to idle run [@measure, @update, @commit, @reset] sequence @next
    zrt.transition next on measure to measured run [@measure, @commit] sequence @next
    zrt.transition next on discard to idle run [@reset] sequence @next
    zrt.transition measured on apply to idle run [@update, @reset]
    zrt.transition measured on discard to idle run [@undo, @reset]
  }
}

