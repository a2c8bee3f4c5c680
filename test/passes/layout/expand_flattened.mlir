// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --zero-expand-flattened | FileCheck %s
// RUN: zero-opt %zero_src/examples/topology.mlir --zero-expand-flattened --zero-expand-flattened | FileCheck %s --check-prefix=TWICE
//
// RUN: zero-prove %zero_src/examples/topology.mlir --stage=1 | FileCheck %s --check-prefix=PROVED
// RUN: zero-opt %zero_src/examples/topology.mlir --zero-prove -o /dev/null
// RUN: zero-opt %zero_src/examples/topology.mlir --zero-expand-flattened -o %t.mlir && zero-prove %zero_src/examples/topology.mlir %t.mlir | FileCheck %s --check-prefix=PROVED
//
// PROVED: proved
//
// A flattened axis is short for its axes, in types, scales and lists of axes.

// CHECK: zero.mesh @m<["edp" = 2, "ep" = 3, "tp" = 2, "sp" = 2]>{{ *$}}
zero.mesh @m <["edp" = 2, "ep" = 3, "tp" = 2, "sp" = 2]> flattened ["dp" = ["edp", "ep"], "model" = ["tp", "sp"]]
// CHECK: zero.parameter @v : 8xf32
zero.parameter @v : 8xf32
// CHECK: zero.parameter @w : 12x8xf32, sharded = [sp, tp]
zero.parameter @w : 12x8xf32, sharded = [model]
zero.group @g [@v, @w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
// CHECK: zero.step @s on @m normalize(accumulation : -1, edp : -1, ep : -1, tokens : -1)
// CHECK-SAME: !zero.value<f64, partial = [edp, ep]>
zero.step @s on @m normalize(accumulation : -1, dp : -1, tokens : -1)
    (%n: !zero.value<f64, partial = [dp]> {zero.tokens}) {
  // CHECK: %{{.*}}:2 = zero.micro_batches in f32
  %g:2 = zero.micro_batches in f32 {
    // CHECK: zero.backward(@v, @w) prescaled (accumulation : -1, tokens : -1) replicated [tp, sp]
    // CHECK-SAME: !zero.value<8xf32, partial = [edp, ep, micro], scaled = [edp : 1, ep : 1]>
    // CHECK-SAME: !zero.value<12x8xf32, sharded = [sp, tp], partial = [edp, ep, micro], scaled = [edp : 1, ep : 1]>
    %d:2 = zero.backward(@v, @w) prescaled(accumulation : -1, tokens : -1) replicated [model]
        : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<12x8xf32, sharded = [model], partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1
        : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<12x8xf32, sharded = [model], partial = [dp, micro], scaled = [dp : 1]>
  }
  // CHECK: zero.reduce
  // CHECK-SAME: !zero.value<8xf32, partial = [edp, ep], scaled = [edp : 1, ep : 1]>
  %r:2 = zero.reduce %g#0, %g#1
      : !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<12x8xf32, sharded = [model], partial = [dp], scaled = [dp : 1]>
  // CHECK: zero.update @g with @sgd
  // CHECK-SAME: (!zero.value<8xf32>, !zero.value<12x8xf32, sharded = [sp, tp]>)
  zero.update @g with @sgd(%r#0, %r#1) hyper(lr = 0.5)
      : (!zero.value<8xf32>, !zero.value<12x8xf32, sharded = [model]>), ()
  zero.return []
}

// -----

// Nothing to do, nothing done.
// CHECK: zero.mesh @none<["dp" = 2]>
zero.mesh @none <["dp" = 2]>
// CHECK: zero.parameter @x : 8xf32, sharded = [dp]
zero.parameter @x : 8xf32, sharded = [dp]

// TWICE: zero.backward
// TWICE-SAME: sharded = [ep, tp : 1], partial = [edp, micro], reduced = [ep], scaled = [edp : 1, ep : 1]
