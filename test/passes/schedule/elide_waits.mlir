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

zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @a [0.0, 0.0]
  zrt.slots @b [0.0]
  zrt.event @first on compute
  zrt.event @second on compute
  zrt.event @sent on collective
  zrt.event @unused on compute
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
  zrt.transition idle on begin to first run [@send]
  zrt.transition first on accumulate to between run [@follow]
  zrt.transition first on apply to idle run [@of_both]
  zrt.transition between on apply to idle run [@of_both]
  zrt.transition between on discard to idle run [@of_one]
}
