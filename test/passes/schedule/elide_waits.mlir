// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --zrt-elide-waits | FileCheck %s
// RUN: zero-opt %s --zrt-elide-waits > %t.once
// RUN: zero-opt %t.once --zrt-elide-waits | diff %t.once -
//
// Waits that others imply are removed, and events for which nothing waits.
//
// CHECK-NOT: zrt.event @first
// CHECK: zrt.event @second on compute
// CHECK: zrt.event @sent on collective
// CHECK-NOT: zrt.event @unused
// CHECK: zrt.event @delivered on caller
// CHECK: zrt.event @read on caller
//
// A stream that waits for a record follows the records before it. It follows what the
// event's stream followed, too.
// CHECK: zrt.handler @send {
// CHECK-NEXT: zrt.count_arrivals to @a
// CHECK-NEXT: zrt.record @second
// CHECK-NEXT: zrt.wait @second on collective
// CHECK-NEXT: zrt.all_reduce_scalars @a over [dp] on collective
// CHECK-NEXT: zrt.record @sent
// CHECK-NEXT: zrt.wait @sent on host
// CHECK-NEXT: }
//
// CHECK: zrt.handler @follow {
// CHECK-NEXT: zrt.wait @sent on compute
// CHECK-NEXT: }
//
// One of the paths to this handler does not wait before it.
// CHECK: zrt.handler @of_both {
// CHECK-NEXT: zrt.wait @sent on compute
// CHECK-NEXT: zrt.commit @b
// CHECK-NEXT: }
//
// All paths to this one do.
// CHECK: zrt.handler @of_one {
// CHECK-NEXT: zrt.commit @b
// CHECK-NEXT: }
//
// A stream of the caller may be another one in the next call, and need not wait. Its waits
// stay and imply nothing. A stream that has waited for a record need not wait again.
// CHECK: zrt.handler @arrive {
// CHECK-NEXT: zrt.record @delivered
// CHECK-NEXT: zrt.wait @delivered on compute
// CHECK-NEXT: zrt.pack
// CHECK-NEXT: zrt.record @taken
// CHECK-NEXT: zrt.wait @taken on caller
// CHECK-NEXT: }
// CHECK: zrt.handler @apply {
// CHECK-NEXT: zrt.record @read
// CHECK-NEXT: zrt.wait @read on collective
// CHECK-NEXT: zrt.wait @taken on collective
// CHECK-NEXT: }

zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @a [0.0, 0.0]
  zrt.slots @b [0.0]
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @p : !zero.value<8xf32> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.bucket_table @b0 into @g store @store add @store parameters @p
  zrt.event @first on compute
  zrt.event @second on compute
  zrt.event @sent on collective
  zrt.event @unused on compute
  zrt.event @delivered on caller
  zrt.event @read on caller
  zrt.event @taken on compute
  zrt.handler @send {
    zrt.record @first
    zrt.count_arrivals to @a
    zrt.record @second
    zrt.wait @second on collective
    zrt.wait @first on collective
    zrt.all_reduce_scalars @a over [dp] on collective
    zrt.record @sent
    zrt.record @unused
    zrt.wait @sent on host
    zrt.wait @second on host
    zrt.wait @sent on host
  }
  zrt.handler @follow {
    zrt.wait @sent on compute
  }
  zrt.handler @of_both {
    zrt.wait @sent on compute
    zrt.commit @b
  }
  zrt.handler @of_one {
    zrt.wait @sent on compute
    zrt.commit @b
  }
  zrt.handler @arrive {
    zrt.record @delivered
    zrt.wait @delivered on compute
    zrt.wait @delivered on compute
    zrt.pack
    zrt.record @taken
    zrt.wait @taken on caller
  }
  zrt.handler @apply {
    zrt.record @read
    zrt.wait @read on collective
    zrt.wait @read on collective
    zrt.wait @taken on collective
  }
  zrt.transition idle on begin to first run [@send]
  zrt.transition first on arrive to first run [@arrive]
  zrt.transition first on accumulate to between run [@follow]
  zrt.transition first on apply to idle run [@of_both, @apply]
  zrt.transition between on apply to idle run [@of_both]
  zrt.transition between on discard to idle run [@of_one]
}
