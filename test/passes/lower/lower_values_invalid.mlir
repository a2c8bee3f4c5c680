// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: split-file %s %t
// RUN: not zero-opt %t/twice.mlir --zero-lower-to-zrt 2>&1 | FileCheck %t/twice.mlir
// RUN: not zero-opt %t/swapped.mlir --zero-lower-to-zrt 2>&1 | FileCheck %t/swapped.mlir
// RUN: not zero-opt %t/squares.mlir --zero-lower-to-zrt 2>&1 | FileCheck %t/squares.mlir
// RUN: not zero-opt %t/scaled.mlir --zero-lower-to-zrt 2>&1 | FileCheck %t/scaled.mlir
// RUN: not zero-opt %t/ranks.mlir --zero-lower-to-zrt 2>&1 | FileCheck %t/ranks.mlir
// RUN: not zero-opt %t/sides.mlir --zero-lower-to-zrt 2>&1 | FileCheck %t/sides.mlir
// RUN: not zero-opt %t/none.mlir --zero-lower-to-zrt 2>&1 | FileCheck %t/none.mlir
//
// Sharded steps that verify and mean something that buffers cannot hold.

//--- twice.mlir
// CHECK: error: operand is neither a scalar nor the gradient of a bucket, or was reduced before
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @x : 8xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.bucket @b1 : 64xf32 arrives f32 [@x] offsets [0] extents [64]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@b0, @b1) prescaled() : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d#0, %d#1 : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g#0 over [dp] : !zero.value<64xf32, partial = [dp]>
  %q = zero.all_reduce %g#1 over [dp] : !zero.value<64xf32, partial = [dp]>
  %t = zero.all_reduce %g#0 over [dp] : !zero.value<64xf32, partial = [dp]>
  %p0 = zero.update_bucket @b0 with @sgd(%t) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b0, %p0 : !zero.value<64xf32>
  %p1 = zero.update_bucket @b1 with @sgd(%q) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b1, %p1 : !zero.value<64xf32>
  zero.return []
}

//--- swapped.mlir
// CHECK: error: gradient is not that of bucket @b0
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @x : 8xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.bucket @b1 : 64xf32 arrives f32 [@x] offsets [0] extents [64]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@b0, @b1) prescaled() : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d#0, %d#1 : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g#0 over [dp] : !zero.value<64xf32, partial = [dp]>
  %q = zero.all_reduce %g#1 over [dp] : !zero.value<64xf32, partial = [dp]>
  %p0 = zero.update_bucket @b0 with @sgd(%q) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b0, %p0 : !zero.value<64xf32>
  %p1 = zero.update_bucket @b1 with @sgd(%r) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b1, %p1 : !zero.value<64xf32>
  zero.return []
}

//--- squares.mlir
// CHECK: error: operand is not the gradient of a bucket as it was reduced
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @x : 8xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.bucket @b1 : 64xf32 arrives f32 [@x] offsets [0] extents [64]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@b0, @b1) prescaled() : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d#0, %d#1 : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g#0 over [dp] : !zero.value<64xf32, partial = [dp]>
  %q = zero.all_reduce %g#1 over [dp] : !zero.value<64xf32, partial = [dp]>
  %u = zero.scale %r by %v : !zero.value<64xf32> by !zero.value<f64>
  %n = zero.sum_squares %u : !zero.value<64xf32>
  %p0 = zero.update_bucket @b0 with @sgd(%r) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b0, %p0 : !zero.value<64xf32>
  %p1 = zero.update_bucket @b1 with @sgd(%q) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b1, %p1 : !zero.value<64xf32>
  zero.return []
}

//--- scaled.mlir
// CHECK: error: gradient is not that of a bucket as it was reduced, times one scalar at most
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @x : 8xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.bucket @b1 : 64xf32 arrives f32 [@x] offsets [0] extents [64]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@b0, @b1) prescaled() : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d#0, %d#1 : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g#0 over [dp] : !zero.value<64xf32, partial = [dp]>
  %q = zero.all_reduce %g#1 over [dp] : !zero.value<64xf32, partial = [dp]>
  %u = zero.scale %r by %v : !zero.value<64xf32> by !zero.value<f64>
  %u2 = zero.scale %u by %v : !zero.value<64xf32> by !zero.value<f64>
  %p0 = zero.update_bucket @b0 with @sgd(%u2) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b0, %p0 : !zero.value<64xf32>
  %p1 = zero.update_bucket @b1 with @sgd(%q) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b1, %p1 : !zero.value<64xf32>
  zero.return []
}

//--- ranks.mlir
// CHECK: error: outcome is for 3 ranks, the mesh has 2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @x : 8xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.bucket @b1 : 64xf32 arrives f32 [@x] offsets [0] extents [64]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@b0, @b1) prescaled() : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %d#0, %d#1 : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g#0 over [dp] : !zero.value<64xf32, partial = [dp]>
  %q = zero.all_reduce %g#1 over [dp] : !zero.value<64xf32, partial = [dp]>
  %w = zero.outcome(%v) missing %v backwards %v squared %v ranks 3 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %p0 = zero.update_bucket @b0 with @sgd(%r) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b0, %p0 : !zero.value<64xf32>
  %p1 = zero.update_bucket @b1 with @sgd(%q) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.assign @b1, %p1 : !zero.value<64xf32>
  zero.return []
}

//--- sides.mlir
// CHECK: error: bucket @b1 is scattered after the loop over backward passes and other buckets in it; lower at stage 1, which scatters all after it
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @x : 8xf32
zero.bucket @b0 : 64xf32 arrives f32 [@w] offsets [0] extents [64]
zero.bucket @b1 : 64xf32 arrives f32 [@x] offsets [0] extents [64]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@b0, @b1) prescaled() : !zero.value<64xf32, partial = [dp, micro]>, !zero.value<64xf32, partial = [dp, micro]>
    %s = zero.reduce_scatter %d#0 over [dp] : !zero.value<64xf32, partial = [dp, micro]>
    zero.yield %s, %d#1 : !zero.value<64xf32, sharded = [dp], partial = [micro]>, !zero.value<64xf32, partial = [dp, micro]>
  }
  %r = zero.reduce_scatter %g#1 over [dp] : !zero.value<64xf32, partial = [dp]>
  %p0 = zero.update_bucket @b0 with @sgd(%g#0) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>)
  %f0 = zero.all_gather %p0 over [dp] : !zero.value<64xf32, sharded = [dp]>
  zero.assign @b0, %f0 : !zero.value<64xf32>
  %p1 = zero.update_bucket @b1 with @sgd(%r) when %v rows(%v) row_of [0] : f32, !zero.value<64xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>)
  %f1 = zero.all_gather %p1 over [dp] : !zero.value<64xf32, sharded = [dp]>
  zero.assign @b1, %f1 : !zero.value<64xf32>
  zero.return []
}

//--- none.mlir
// A step of no buckets has no protocol.
// CHECK: error: has no gradients
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%lr: !zero.value<f64>) {
  zero.return []
}
