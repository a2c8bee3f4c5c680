// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %S/../Inputs/coalesced.mlir --zero-lower-to-zrt | FileCheck %s
// RUN: not zero-opt %S/../Inputs/logical.mlir --zero-lower-to-zrt 2>&1 | FileCheck %s --check-prefix=LOGICAL
//
// LOGICAL: has a sum that is not the gradient of a bucket, scattered or not; run zero-assign-layout first
//
// Buffers say what they hold; parameters in the optimizer's own type have no
// master weights.
// CHECK: zrt.program @train on @cluster batches [dp] inputs [@input.0] results [norm] [@result.norm]
// CHECK: zrt.buffer @b0.gradient : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]> role gradient in device
// CHECK: zrt.buffer @b0.reduced : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> role gradient in device
// CHECK: zrt.buffer @b0.parameters : !zero.value<128xf32> role parameter in device
// CHECK-NOT: zrt.buffer
//
// The update is one fused kernel: factor, optimizer, store.
// CHECK: zrt.kernel @update.sgd.f32.f32 [read f32, update f32] scalars 3 predicated
// CHECK-NEXT: ^bb0(%[[G:.*]]: f32, %[[P:.*]]: f32, %{{.*}}: f64, %[[F:.*]]: f64, %[[S:.*]]: f64):
// CHECK-NEXT: %[[F32:.*]] = arith.truncf %[[F]] : f64 to f32
// CHECK-NEXT: %[[GF:.*]] = arith.mulf %[[G]], %[[F32]]
// CHECK-NEXT: %[[S32:.*]] = arith.truncf %[[S]] : f64 to f32
// CHECK-NEXT: %[[P1:.*]] = math.fma %[[GF]], %[[S32]], %[[P]]
// CHECK-NEXT: zrt.yield %[[P1]]
//
// The first backward pass stores, later ones add.
// CHECK: zrt.handler @arrive_first
// CHECK-NEXT: zrt.pack
// CHECK: zrt.handler @arrive_next
// CHECK-NEXT: zrt.pack accumulate
// CHECK: zrt.handler @close_first
// CHECK-NEXT: zrt.fill_missing @b0
// CHECK: zrt.handler @begin_next
// CHECK-NEXT: zrt.set_role @b0.gradient as accumulator
//
// One collective for each of gradients, statistics and parameters. That of gradients
// runs in a backward pass that is said to be the last, and else when the step is applied.
// CHECK: zrt.handler @reduce
// CHECK-NEXT: zrt.reduce_scatter @b0.gradient to @b0.reduced
// CHECK: zrt.handler @b0.close_only
// CHECK-NEXT: zrt.fill_missing @b0
// CHECK-NEXT: zrt.reduce_scatter @b0.gradient to @b0.reduced
// CHECK: zrt.sequence @only [@b0] run [@b0.close_only]
// CHECK: zrt.handler @b0.close_last
// CHECK-NEXT: zrt.reduce_scatter @b0.gradient to @b0.reduced
// CHECK: zrt.sequence @last [@b0] run [@b0.close_last]
// CHECK: zrt.handler @reopen
// CHECK-NEXT: }
// CHECK: zrt.handler @measure
// CHECK-NOT: zrt.reduce_scatter
// CHECK: zrt.count_arrivals to @arrivals
// CHECK: zrt.launch @sum_squares.f32 [@b0.reduced] over @b0.whole own [dp] sum @sums at 0
// CHECK: zrt.all_reduce_scalars @statistics
// CHECK: zrt.handler @update
// CHECK: zrt.launch @update.sgd.f32.f32 [@b0.reduced, @b0.parameters] over @b0.groups own
// CHECK: zrt.all_gather @b0.parameters
// CHECK: zrt.handler @commit
// CHECK-NEXT: zrt.commit @outcome
//
// CHECK: zrt.transition idle on begin to first run []
// CHECK: zrt.transition first on apply to idle run [@close_first, @reduce, @measure, @update, @commit, @reset]
// CHECK-NEXT: zrt.transition first on measure to measured run [@close_first, @reduce, @measure, @commit]
// CHECK: zrt.transition next on apply to idle run [@reduce, @measure, @update, @commit, @reset]
// CHECK: zrt.transition only on accumulate to reduced run [] sequence @only
// CHECK: zrt.transition last on arrive to last run [@arrive_next] sequence @last
// CHECK: zrt.transition last on apply to idle run [@measure, @update, @commit, @reset] sequence @last
// CHECK: zrt.transition reduced on begin to next run [@reopen, @begin_next]
// CHECK: zrt.transition measured on apply to idle run [@update, @reset]
// CHECK-NEXT: zrt.transition measured on discard to idle run [@reset]
// CHECK-NOT: zrt.transition idle on apply
