// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --zrt-promote-slots | FileCheck %s
// RUN: zero-opt %zero_src/examples/quickstart.mlir --zero-lower="stage=2 until=lowered" | FileCheck %s --check-prefix=QUICK
//
// Of a real step 13 slots are left; there are 41 without the pass.
// QUICK-COUNT-13: zrt.slots
// QUICK-NOT: zrt.slots

zero.mesh @m <["dp" = 2]>
zrt.program @s on @m inputs [@lr] results [norm] [@norm] {
  zrt.slots @lr [0.0] hyper "lr"
  zrt.slots @norm [0.0]
  zrt.slots @kept [0.0, 0.0]
  zrt.slots @lost [0.0]
  zrt.slots @chain [0.0]
  // Nothing but stores, or loads of what is not needed itself.
  // CHECK: zrt.slots @lr
  // CHECK-NEXT: zrt.slots @norm
  // CHECK-NEXT: zrt.slots @kept
  // CHECK-NEXT: zrt.scalars @first

  zrt.scalars @first {
    %x = zrt.load_slot @lr[0]
    zrt.store_slot %x, @kept[0]
    // Of the value that is stored last, and of the same index only.
    %y = arith.addf %x, %x : f64
    zrt.store_slot %y, @kept[0]
    %a = zrt.load_slot @kept[0]
    %b = zrt.load_slot @kept[1]
    %c = arith.subf %a, %b : f64
    zrt.store_slot %c, @kept[1]
    zrt.store_slot %c, @lost[0]
    zrt.store_slot %c, @chain[0]
    zrt.yield
  }
  // CHECK: %[[X:.*]] = zrt.load_slot @lr[0]
  // CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
  // CHECK-NEXT: zrt.store_slot %[[Y]], @kept[0]
  // CHECK-NEXT: %[[B:.*]] = zrt.load_slot @kept[1]
  // CHECK-NEXT: %[[C:.*]] = arith.subf %[[Y]], %[[B]]
  // CHECK-NEXT: zrt.store_slot %[[C]], @kept[1]
  // CHECK-NEXT: zrt.yield

  zrt.scalars @second {
    // Stored by another program.
    %a = zrt.load_slot @kept[0]
    %b = zrt.load_slot @kept[1]
    %n = arith.mulf %a, %b : f64
    zrt.store_slot %n, @norm[0]
    // Read where nothing reads the result.
    %d = zrt.load_slot @chain[0]
    %e = arith.negf %d : f64
    zrt.store_slot %e, @lost[0]
    zrt.yield
  }
  // CHECK: zrt.scalars @second
  // CHECK-NEXT: %[[A:.*]] = zrt.load_slot @kept[0]
  // CHECK-NEXT: %[[B2:.*]] = zrt.load_slot @kept[1]
  // CHECK-NEXT: %[[N:.*]] = arith.mulf %[[A]], %[[B2]]
  // CHECK-NEXT: zrt.store_slot %[[N]], @norm[0]
  // CHECK-NEXT: zrt.yield

  zrt.handler @finish {
    zrt.run_scalars @first
    zrt.run_scalars @second
  }
}
