// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// units.mlir as the compiler lowers it: --zero-lower="stage=3 shard-over=edp
// until=lowered".

module {
  zero.mesh @cluster<["edp" = 2, "ep" = 2]> 
  zero.parameter @embedding : 15x7xbf16 uses 2
  zero.parameter @w0 : 8x8xbf16
  zero.parameter @norm0 : 8xbf16
  zero.parameter @w1 : 8x8xbf16
  zero.parameter @norm1 : 8xbf16
  zero.parameter @experts : 4x32xbf16, sharded = [ep]
  zero.parameter @router : 4x8xbf16
  zero.unit @layer0 [@w0, @norm0]
  zero.unit @layer1 [@w1, @norm1]
  zero.unit @moe [@experts, @router]
  zero.bucket @b0 : 128xf32 arrives bf16 [@router] offsets [0] extents [128] unit @moe
  zero.bucket @b1 : 2x64xf32, sharded = [ep] arrives bf16 [@experts] offsets [0] extents [64] unit @moe
  zero.bucket @b2 : 128xf32 arrives bf16 [@norm1, @w1] offsets [0, 32] extents [32, 96] unit @layer1
  zero.bucket @b3 : 128xf32 arrives bf16 [@norm0, @w0] offsets [0, 32] extents [32, 96] unit @layer0
  zero.bucket @b4 : 128xf32 arrives bf16 [@embedding] offsets [0] extents [128]
  zrt.program @train on @cluster batches [edp, ep] inputs [@input.0] results [norm] [@result.norm] {
    zrt.slots @arrivals [0.000000e+00, 0.000000e+00]
    zrt.slots @outcome [0.000000e+00]
    zrt.slots @input.0 [0.000000e+00] hyper "lr"
    zrt.buffer @b0.gradient : !zero.value<128xbf16, partial = [edp, ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b0.reduced : !zero.value<128xf32, sharded = [edp], partial = [ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b0.parameters : !zero.value<128xbf16, sharded = [edp]> role parameter in device
    zrt.buffer @moe.unsharded : !zero.value<128xbf16> role parameter in device on_demand shares @unsharded.0.0
    zrt.buffer @b0.master : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state parameter of @b0 in @b0.parameters
    zrt.state master of @b0 in @b0.master
    zrt.buffer @b0.m : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state m of @b0 in @b0.m
    zrt.buffer @b0.v : !zero.value<128xf32, sharded = [edp]> role state in device
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
    zrt.bucket_table @b0 into @b0.gradient store @store.bf16.bf16 add @add.bf16.bf16 parameters @b0.parameters master @b0.master unsharded @moe.unsharded
    zrt.buffer @b1.gradient : !zero.value<2x64xbf16, sharded = [ep], partial = [edp], scaled = [edp : 1, ep : 1]> role gradient in device shares @b3.gradient
    zrt.buffer @b1.reduced : !zero.value<2x64xf32, sharded = [edp : 1, ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b1.parameters : !zero.value<2x64xbf16, sharded = [edp : 1, ep]> role parameter in device
    zrt.buffer @moe.unsharded_0 : !zero.value<2x64xbf16, sharded = [ep]> role parameter in device on_demand shares @unsharded.0.1
    zrt.buffer @b1.master : !zero.value<2x64xf32, sharded = [edp : 1, ep]> role state in device
    zrt.state parameter of @b1 in @b1.parameters
    zrt.state master of @b1 in @b1.master
    zrt.buffer @b1.m : !zero.value<2x64xf32, sharded = [edp : 1, ep]> role state in device
    zrt.state m of @b1 in @b1.m
    zrt.buffer @b1.v : !zero.value<2x64xf32, sharded = [edp : 1, ep]> role state in device
    zrt.state v of @b1 in @b1.v
    zrt.segments @b1.whole ends [64] rows [] scalars []
    zrt.bucket_table @b1 into @b1.gradient store @store.bf16.bf16 add @add.bf16.bf16 parameters @b1.parameters master @b1.master unsharded @moe.unsharded_0
    zrt.buffer @b2.gradient : !zero.value<128xbf16, partial = [edp, ep], scaled = [edp : 1, ep : 1]> role gradient in device shares @b0.gradient
    zrt.buffer @b2.reduced : !zero.value<128xf32, sharded = [edp], partial = [ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b2.parameters : !zero.value<128xbf16, sharded = [edp]> role parameter in device
    zrt.buffer @layer1.unsharded : !zero.value<128xbf16> role parameter in device on_demand shares @unsharded.1.0
    zrt.buffer @b2.master : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state parameter of @b2 in @b2.parameters
    zrt.state master of @b2 in @b2.master
    zrt.buffer @b2.m : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state m of @b2 in @b2.m
    zrt.buffer @b2.v : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state v of @b2 in @b2.v
    zrt.segments @b2.whole ends [128] rows [] scalars []
    zrt.bucket_table @b2 into @b2.gradient store @store.bf16.bf16 add @add.bf16.bf16 parameters @b2.parameters master @b2.master unsharded @layer1.unsharded
    zrt.buffer @b3.gradient : !zero.value<128xbf16, partial = [edp, ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b3.reduced : !zero.value<128xf32, sharded = [edp], partial = [ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b3.parameters : !zero.value<128xbf16, sharded = [edp]> role parameter in device
    zrt.buffer @layer0.unsharded : !zero.value<128xbf16> role parameter in device on_demand shares @unsharded.0.0
    zrt.buffer @b3.master : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state parameter of @b3 in @b3.parameters
    zrt.state master of @b3 in @b3.master
    zrt.buffer @b3.m : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state m of @b3 in @b3.m
    zrt.buffer @b3.v : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state v of @b3 in @b3.v
    zrt.segments @b3.whole ends [128] rows [] scalars []
    zrt.bucket_table @b3 into @b3.gradient store @store.bf16.bf16 add @add.bf16.bf16 parameters @b3.parameters master @b3.master unsharded @layer0.unsharded
    zrt.buffer @b4.gradient : !zero.value<128xf32, partial = [edp, ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b4.reduced : !zero.value<128xf32, sharded = [edp], partial = [ep], scaled = [edp : 1, ep : 1]> role gradient in device
    zrt.buffer @b4.parameters : !zero.value<128xbf16> role parameter in device
    zrt.buffer @b4.master : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state parameter of @b4 in @b4.parameters
    zrt.state master of @b4 in @b4.master
    zrt.buffer @b4.m : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state m of @b4 in @b4.m
    zrt.buffer @b4.v : !zero.value<128xf32, sharded = [edp]> role state in device
    zrt.state v of @b4 in @b4.v
    zrt.segments @b4.whole ends [128] rows [] scalars []
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
    zrt.bucket_table @b4 into @b4.gradient store @store.bf16.f32 add @add.bf16.f32 parameters @b4.parameters master @b4.master
    zrt.scalars @scalars {
      %cst = arith.constant 1.000000e+00 : f64
      %cst_0 = arith.constant 2.000000e+00 : f64
      %0 = arith.mulf %cst, %cst_0 : f64
      %1 = arith.mulf %0, %cst_0 : f64
      %2 = arith.divf %cst, %1 : f64
      zrt.store_slot %2, @scalar[0]
      %3 = zrt.load_slot @sums[0]
      %4 = zrt.load_slot @sums[1]
      %5 = arith.addf %3, %4 : f64
      %6 = zrt.load_slot @sums[2]
      %7 = zrt.load_slot @sums[3]
      %8 = arith.addf %6, %7 : f64
      %9 = arith.addf %5, %8 : f64
      %10 = zrt.load_slot @sums_2[0]
      %11 = zrt.load_slot @arrivals[0]
      %12 = arith.mulf %11, %11 : f64
      zrt.store_slot %9, @statistics[0]
      zrt.store_slot %10, @statistics[1]
      %13 = zrt.load_slot @arrivals[0]
      zrt.store_slot %13, @statistics[2]
      zrt.store_slot %12, @statistics[3]
      %14 = zrt.load_slot @arrivals[1]
      zrt.store_slot %14, @statistics[4]
      zrt.yield
    }
    zrt.slots @scalar [0.000000e+00]
    zrt.slots @sums [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.kernel @sum_squares.f32 [read f32] scalars 0 sums {
    ^bb0(%arg0: f32):
      %0 = arith.extf %arg0 : f32 to f64
      %1 = arith.mulf %0, %0 : f64
      zrt.yield %1 : f64
    }
    zrt.slots @sums_2 [0.000000e+00]
    zrt.slots @statistics [0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.scalars @scalars_5 {
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
      %18 = zrt.load_slot @all.counters[0]
      zrt.store_slot %18, @all.counters.before[0]
      %cst_4 = arith.constant 7.500000e-01 : f64
      %19 = arith.mulf %18, %cst_4 : f64
      %20 = arith.subf %cst_0, %19 : f64
      %21 = arith.divf %17, %20 : f64
      %22 = arith.negf %21 : f64
      %23 = arith.cmpf oeq, %16, %cst : f64
      %24 = arith.select %23, %19, %18 : f64
      zrt.store_slot %24, @all.counters[0]
      %25 = arith.addf %0, %1 : f64
      %26 = math.sqrt %25 : f64
      %27 = zrt.load_slot @scalar[0]
      %28 = arith.mulf %26, %27 : f64
      %cst_5 = arith.constant 9.9999999999999995E-7 : f64
      %29 = arith.addf %28, %cst_5 : f64
      %30 = arith.divf %cst_0, %29 : f64
      %31 = arith.minimumf %cst_0, %30 : f64
      %32 = arith.mulf %27, %31 : f64
      zrt.store_slot %28, @result.norm[0]
      zrt.store_slot %16, @outcome[0]
      zrt.store_slot %16, @row[0]
      zrt.store_slot %32, @row[1]
      zrt.store_slot %22, @row[2]
      zrt.yield
    }
    zrt.slots @all.counters [1.000000e+00]
    zrt.scalar_state "all.beta1_t" in @all.counters[0]
    zrt.slots @all.counters.before [0.000000e+00]
    zrt.slots @result.norm [0.000000e+00]
    zrt.slots @row [0.000000e+00, 0.000000e+00, 0.000000e+00]
    zrt.segments @b0.groups ends [128] rows [0] scalars [@row]
    zrt.kernel @update.adam.f32.bf16 [read f32, update f32, update f32, update f32, write bf16] scalars 3 predicated {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f64, %arg5: f64, %arg6: f64):
      %0 = arith.truncf %arg5 : f64 to f32
      %1 = arith.mulf %arg0, %0 : f32
      %2 = arith.truncf %arg6 : f64 to f32
      %cst = arith.constant 7.500000e-01 : f32
      %cst_0 = arith.constant 2.500000e-01 : f32
      %cst_1 = arith.constant 9.99999993E-9 : f32
      %3 = arith.mulf %arg2, %cst : f32
      %4 = math.fma %1, %cst_0, %3 : f32
      %5 = arith.mulf %1, %1 : f32
      %6 = arith.mulf %arg3, %cst : f32
      %7 = math.fma %5, %cst_0, %6 : f32
      %8 = math.sqrt %7 : f32
      %9 = arith.addf %8, %cst_1 : f32
      %10 = arith.divf %4, %9 : f32
      %11 = math.fma %10, %2, %arg1 : f32
      %12 = arith.truncf %11 : f32 to bf16
      zrt.yield %11, %4, %7, %12 : f32, f32, f32, bf16
    }
    zrt.segments @b1.groups ends [64] rows [0] scalars [@row]
    zrt.segments @b2.groups ends [128] rows [0] scalars [@row]
    zrt.segments @b3.groups ends [128] rows [0] scalars [@row]
    zrt.segments @b4.groups ends [128] rows [0] scalars [@row]
    zrt.scalars @restore {
      %0 = zrt.load_slot @all.counters.before[0]
      zrt.store_slot %0, @all.counters[0]
      zrt.yield
    }
    zrt.buffer @unsharded.0.0 : !zero.value<128xbf16> role parameter in device
    zrt.buffer @unsharded.0.1 : !zero.value<2x64xbf16, sharded = [ep]> role parameter in device
    zrt.buffer @unsharded.1.0 : !zero.value<128xbf16> role parameter in device
    zrt.handler @layer0.unshard {
      zrt.allocate @layer0.unsharded
      zrt.copy @b3.parameters to @layer0.unsharded
      zrt.all_gather @layer0.unsharded over [edp]
    }
    zrt.handler @layer0.reshard {
      zrt.release @layer0.unsharded
    }
    zrt.unit_table @layer0 unshard @layer0.unshard reshard @layer0.reshard
    zrt.handler @layer1.unshard {
      zrt.allocate @layer1.unsharded
      zrt.copy @b2.parameters to @layer1.unsharded
      zrt.all_gather @layer1.unsharded over [edp]
    }
    zrt.handler @layer1.reshard {
      zrt.release @layer1.unsharded
    }
    zrt.unit_table @layer1 unshard @layer1.unshard reshard @layer1.reshard
    zrt.handler @moe.unshard {
      zrt.allocate @moe.unsharded
      zrt.copy @b0.parameters to @moe.unsharded
      zrt.all_gather @moe.unsharded over [edp]
      zrt.allocate @moe.unsharded_0
      zrt.copy @b1.parameters to @moe.unsharded_0
      zrt.all_gather @moe.unsharded_0 over [edp]
    }
    zrt.handler @moe.reshard {
      zrt.release @moe.unsharded
      zrt.release @moe.unsharded_0
    }
    zrt.unit_table @moe unshard @moe.unshard reshard @moe.reshard
    zrt.handler @arrive_first {
      zrt.pack
    }
    zrt.handler @arrive_next {
      zrt.pack
    }
    zrt.handler @b0.close_first {
      zrt.fill_missing @b0
      zrt.reduce_scatter @b0.gradient to @b0.reduced over [edp]
    }
    zrt.handler @b1.close_first {
      zrt.fill_missing @b1
      zrt.reduce_scatter @b1.gradient to @b1.reduced over [edp]
    }
    zrt.handler @b2.close_first {
      zrt.fill_missing @b2
      zrt.reduce_scatter @b2.gradient to @b2.reduced over [edp]
    }
    zrt.handler @b3.close_first {
      zrt.fill_missing @b3
      zrt.reduce_scatter @b3.gradient to @b3.reduced over [edp]
    }
    zrt.handler @b4.close_first {
      zrt.fill_missing @b4
      zrt.reduce_scatter @b4.gradient to @b4.reduced over [edp]
    }
    zrt.sequence @first [@b0, @b1, @b2, @b3, @b4] run [@b0.close_first, @b1.close_first, @b2.close_first, @b3.close_first, @b4.close_first]
    zrt.handler @b0.close_next {
      zrt.fill_missing @b0
      zrt.reduce_scatter_add @b0.gradient to @b0.reduced over [edp]
    }
    zrt.handler @b1.close_next {
      zrt.fill_missing @b1
      zrt.reduce_scatter_add @b1.gradient to @b1.reduced over [edp]
    }
    zrt.handler @b2.close_next {
      zrt.fill_missing @b2
      zrt.reduce_scatter_add @b2.gradient to @b2.reduced over [edp]
    }
    zrt.handler @b3.close_next {
      zrt.fill_missing @b3
      zrt.reduce_scatter_add @b3.gradient to @b3.reduced over [edp]
    }
    zrt.handler @b4.close_next {
      zrt.fill_missing @b4
      zrt.reduce_scatter_add @b4.gradient to @b4.reduced over [edp]
    }
    zrt.sequence @next [@b0, @b1, @b2, @b3, @b4] run [@b0.close_next, @b1.close_next, @b2.close_next, @b3.close_next, @b4.close_next]
    zrt.accumulator of @b0 in @b0.reduced prescaled (accumulation : -1)
    zrt.accumulator of @b1 in @b1.reduced prescaled (accumulation : -1)
    zrt.accumulator of @b2 in @b2.reduced prescaled (accumulation : -1)
    zrt.accumulator of @b3 in @b3.reduced prescaled (accumulation : -1)
    zrt.accumulator of @b4 in @b4.reduced prescaled (accumulation : -1)
    zrt.handler @begin_next {
      zrt.set_role @b0.reduced as accumulator
      zrt.set_role @b1.reduced as accumulator
      zrt.set_role @b2.reduced as accumulator
      zrt.set_role @b3.reduced as accumulator
      zrt.set_role @b4.reduced as accumulator
    }
    zrt.handler @reset {
      zrt.set_role @b0.reduced as gradient
      zrt.set_role @b1.reduced as gradient
      zrt.set_role @b2.reduced as gradient
      zrt.set_role @b3.reduced as gradient
      zrt.set_role @b4.reduced as gradient
    }
    zrt.handler @measure {
      zrt.count_arrivals to @arrivals
      zrt.all_reduce @b0.reduced over [ep]
      zrt.all_reduce @b2.reduced over [ep]
      zrt.all_reduce @b3.reduced over [ep]
      zrt.all_reduce @b4.reduced over [ep]
      zrt.launch @sum_squares.f32 [@b0.reduced] over @b0.whole own [edp] sum @sums at 0
      zrt.launch @sum_squares.f32 [@b2.reduced] over @b2.whole own [edp] sum @sums at 1
      zrt.launch @sum_squares.f32 [@b3.reduced] over @b3.whole own [edp] sum @sums at 2
      zrt.launch @sum_squares.f32 [@b4.reduced] over @b4.whole own [edp] sum @sums at 3
      zrt.launch @sum_squares.f32 [@b1.reduced] over @b1.whole own [edp] sum @sums_2 at 0
      zrt.run_scalars @scalars
      zrt.count_replicated_once @statistics[0] over [ep]
      zrt.all_reduce_scalars @statistics over [edp, ep]
      zrt.run_scalars @scalars_5
    }
    zrt.handler @update {
      zrt.launch @update.adam.f32.bf16 [@b0.reduced, @b0.master, @b0.m, @b0.v, @b0.parameters] over @b0.groups own [edp]
      zrt.launch @update.adam.f32.bf16 [@b1.reduced, @b1.master, @b1.m, @b1.v, @b1.parameters] over @b1.groups own [edp]
      zrt.launch @update.adam.f32.bf16 [@b2.reduced, @b2.master, @b2.m, @b2.v, @b2.parameters] over @b2.groups own [edp]
      zrt.launch @update.adam.f32.bf16 [@b3.reduced, @b3.master, @b3.m, @b3.v, @b3.parameters] over @b3.groups own [edp]
      zrt.launch @update.adam.f32.bf16 [@b4.reduced, @b4.master, @b4.m, @b4.v, @b4.parameters] over @b4.groups own [edp]
      zrt.all_gather @b4.parameters over [edp]
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
    zrt.transition idle on unshard to idle run []
    zrt.transition idle on reshard to idle run []
    zrt.transition first on unshard to first run [] sequence @first
    zrt.transition first on reshard to first run [] sequence @first
    zrt.transition between on unshard to between run []
    zrt.transition between on reshard to between run []
    zrt.transition next on unshard to next run [] sequence @next
    zrt.transition next on reshard to next run [] sequence @next
  }
}

