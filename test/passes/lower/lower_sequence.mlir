// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %zero_src/examples/quickstart.mlir --zero-lower="stage=2 bucket-bytes=1 until=lowered" | FileCheck %s
// RUN: zero-opt %zero_src/examples/quickstart.mlir --zero-lower="stage=1 bucket-bytes=1 until=lowered" | FileCheck %s --check-prefix=ONE
//
// Stage 2 closes four buckets in one order, two open at once: four gradients, two
// of them in the memory of the larger ones.
//
// CHECK: zrt.buffer @b0.gradient : !zero.value<128xbf16, {{.*}}> role gradient in device{{$}}
// CHECK: zrt.buffer @b1.gradient : !zero.value<640xbf16, {{.*}}> role gradient in device shares @b3.gradient
// CHECK: zrt.buffer @b2.gradient : !zero.value<128xbf16, {{.*}}> role gradient in device shares @b0.gradient
// CHECK: zrt.buffer @b3.gradient : !zero.value<3072xbf16, {{.*}}> role gradient in device{{$}}
// CHECK: zrt.handler @b0.close_first
// CHECK-NEXT: zrt.fill_missing @b0
// CHECK-NEXT: zrt.reduce_scatter @b0.gradient to @b0.reduced
// CHECK: zrt.sequence @first [@b0, @b1, @b2, @b3] run [@b0.close_first, @b1.close_first, @b2.close_first, @b3.close_first]
// CHECK: zrt.handler @b3.close_next
// CHECK-NEXT: zrt.fill_missing @b3
// CHECK-NEXT: zrt.reduce_scatter_add @b3.gradient to @b3.reduced
// CHECK: zrt.sequence @next [@b0, @b1, @b2, @b3]
// CHECK: zrt.transition first on arrive to first run [@arrive_first] sequence @first
// CHECK: zrt.transition first on discard to idle run [] sequence @first
// CHECK: zrt.transition next on apply to idle run [@measure, @update, @commit, @reset] sequence @next
// CHECK-NEXT: zrt.transition next on measure to measured run [@measure, @commit] sequence @next
//
// Stage 1 keeps whole gradients over backward passes; none can share.
// They are closed early, all open at once, in a backward pass that is said to be the last.
// ONE-NOT: shares
// ONE: zrt.sequence @only [@b0, @b1, @b2, @b3] run [@b0.close_only, @b1.close_only, @b2.close_only, @b3.close_only]
// ONE: zrt.sequence @last
// ONE-NOT: shares
