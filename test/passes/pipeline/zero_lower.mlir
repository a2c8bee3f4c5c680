// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %zero_src/examples/quickstart.mlir --zero-lower="mesh=dp=2 stage=2 until=sharded" | FileCheck %s --check-prefixes=ALL,SHARDED
// RUN: zero-opt %zero_src/examples/quickstart.mlir --zero-lower="mesh=dp=2 stage=2" | FileCheck %s --check-prefixes=ALL,SCHEDULED
// RUN: zero-opt %zero_src/examples/quickstart.mlir --zero-lower="mesh=dp=2 stage=2 until=lowered" | FileCheck %s --check-prefixes=ALL,LOWERED
// RUN: not zero-opt %zero_src/examples/quickstart.mlir --zero-lower="until=later" 2>&1 | FileCheck %s --check-prefix=UNTIL
//
// The whole way of the step in the README, and the ways in between.
//
// ALL: zero.mesh @cluster<["dp" = 2]>
// SHARDED: zero.reduce_scatter {{.*}}partial = [dp, micro]
// SHARDED: zero.all_reduce %{{.*}} over [dp] : !zero.value<4xf64, partial = [dp]>
// SHARDED-NOT: zero.all_reduce
// LOWERED-NOT: zero.step
// LOWERED-NOT: zrt.event
// LOWERED: zrt.handler @b0.close_first
// LOWERED-NEXT: zrt.fill_missing @b0
// LOWERED-NEXT: zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]{{$}}
// LOWERED-NEXT: }
// LOWERED: zrt.sequence @first [@b0] run [@b0.close_first]
// LOWERED-NOT: zrt.wait
// SCHEDULED-NOT: zero.step
// SCHEDULED: zrt.event @b0.reduced.reduce_scatter on collective
// SCHEDULED: zrt.handler @b0.close_first
// SCHEDULED: zrt.wait @b0.fill_missing on collective
// SCHEDULED-NEXT: zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp] on collective
// SCHEDULED-NEXT: zrt.record @b0.reduced.reduce_scatter
// SCHEDULED: zrt.sequence @first [@b0] run [@b0.close_first]
// SCHEDULED: zrt.handler @b0.close_next
// SCHEDULED: zrt.reduce_scatter_add @b0.gradient to @b0.reduced
// SCHEDULED: zrt.handler @measure
// SCHEDULED: zrt.all_reduce_scalars
// SCHEDULED-NOT: zrt.all_reduce_scalars
// UNTIL: phase must be logical, sharded, placed, lowered or scheduled, got 'later'
