// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// What only meshes of several axes have.

zero.mesh @cluster <["edp" = 2, "ep" = 2, "tp" = 2]>

// CHECK: zero.parameter @dense : 6x10xf32
zero.parameter @dense : 6x10xf32
// CHECK: zero.parameter @column : 6x8xbf16, sharded = [tp : 1] optional uses 2
zero.parameter @column : 6x8xbf16, sharded = [tp : 1] optional uses 2
// CHECK: zero.parameter @expert : 4x6xf32, sharded = [ep, tp : 1]
zero.parameter @expert : 4x6xf32, sharded = [tp : 1, ep]
// CHECK: zero.parameter @embedding : 4x6xf32, on = [pp : 0, pp : 3]
zero.parameter @embedding : 4x6xf32, on = [pp : 3, pp : 0]

// CHECK: zero.bucket @rows : 2x2x32xf32, sharded = [ep, tp : 1] arrives f32 [@expert]
zero.bucket @rows : 2x2x32xf32, sharded = [ep, tp : 1] arrives f32 [@expert] offsets [0] extents [32]

zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %s: f32):
  zero.yield %p : f32
}
zero.group @all [@expert]

// CHECK: zero.step @step
zero.step @step on @cluster normalize(edp : -1, ep : -1) (%lr: !zero.value<f64>, %v: !zero.value<f64>) {
  // CHECK: zero.backward(@rows) prescaled () replicated [tp]
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@rows) prescaled() replicated [tp]
        : !zero.value<2x2x32xf32, sharded = [ep, tp : 1], partial = [edp, micro], reduced = [ep], scaled = [edp : 1, ep : 1]>
    zero.yield %d
        : !zero.value<2x2x32xf32, sharded = [ep, tp : 1], partial = [edp, micro], reduced = [ep], scaled = [edp : 1, ep : 1]>
  }
  // What was reduced is a gradient like any other behind the loop; slices are
  // those of the last dimension.
  // CHECK: zero.reduce_scatter {{.*}} over [edp] : !zero.value<2x2x32xf32, sharded = [ep, tp : 1], partial = [edp], scaled
  %r = zero.reduce_scatter %g over [edp]
      : !zero.value<2x2x32xf32, sharded = [ep, tp : 1], partial = [edp], scaled = [edp : 1, ep : 1]>
  // CHECK: zero.sum_squares {{.*}} : !zero.value<2x2x32xf32, sharded = [edp : 2, ep, tp : 1], scaled
  %s = zero.sum_squares %r : !zero.value<2x2x32xf32, sharded = [edp : 2, ep, tp : 1], scaled = [edp : 1, ep : 1]>
  %c = zero.constant 1.0
  // CHECK: %[[O:.*]] = zero.count_replicated_once {{.*}} over [tp] : !zero.value<f64>
  // CHECK: zero.all_reduce %[[O]] over [tp] : !zero.value<f64, partial = [tp]>
  %o = zero.count_replicated_once %c over [tp] : !zero.value<f64>
  %a = zero.all_reduce %o over [tp] : !zero.value<f64, partial = [tp]>
  // CHECK: zero.all_gather {{.*}} over [edp] : !zero.value<2x2x32xf32, sharded = [edp : 2, ep, tp : 1]>
  // CHECK: zero.assign @rows, {{.*}} : !zero.value<2x2x32xf32, sharded = [ep, tp : 1]>
  %f = zero.factor (edp : -1, ep : -1)
  %u = zero.scale %r by %f : !zero.value<2x2x32xf32, sharded = [edp : 2, ep, tp : 1], scaled = [edp : 1, ep : 1]> by !zero.value<f64, scaled = [edp : -1, ep : -1]>
  %row = zero.prepare @all with @sgd(%lr) when %v yields 1 : (!zero.value<f64>), !zero.value<f64>
  %p = zero.update_bucket @rows with @sgd(%u) when %v rows(%row) row_of [0] : f32, !zero.value<2x2x32xf32, sharded = [edp : 2, ep, tp : 1]>, !zero.value<f64>, (!zero.value<f64>)
  %w = zero.all_gather %p over [edp] : !zero.value<2x2x32xf32, sharded = [edp : 2, ep, tp : 1]>
  zero.assign @rows, %w : !zero.value<2x2x32xf32, sharded = [ep, tp : 1]>
  zero.return []
}
