// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %S/../Inputs/laid_out.mlir --zero-insert-collectives=stage=1 | FileCheck %s
// RUN: zero-opt %S/../Inputs/laid_out.mlir --zero-insert-collectives=stage=0 | FileCheck %s --check-prefix=STAGE0
//
// Stage 1: one reduce_scatter and one all_gather per bucket.
//
// CHECK: %[[G:.*]] = zero.micro_batches
// CHECK: %[[R:.*]] = zero.reduce_scatter %[[G]] over [dp]
// CHECK: %[[F:.*]] = zero.factor (dp : -1)
//
// The norm is taken of what was reduced, and its scale is known from its type.
// CHECK: %[[Q:.*]] = zero.sum_squares %[[R]] : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
// CHECK: %[[S:.*]] = zero.all_reduce %[[Q]] over [dp] : !zero.value<f64, partial = [dp], scaled = [dp : 2]>
// CHECK: %[[T:.*]] = zero.sqrt %[[S]]
// CHECK: %[[N:.*]] = zero.scale %[[T]] by %[[F]]
// CHECK: %[[C:.*]] = zero.clip_coefficient %[[N]] max 1.0
//
// Factor and coefficient are multiplied before they meet the gradient.
// CHECK: %[[FC:.*]] = zero.scale %[[F]] by %[[C]]
// CHECK: %[[V:.*]] = zero.outcome(%[[S]])
// CHECK: %[[U:.*]] = zero.scale %[[R]] by %[[FC]]
// CHECK: %[[P:.*]] = zero.update_bucket @b0 with @sgd(%[[U]]) when %[[V]]
// CHECK: %[[A:.*]] = zero.all_gather %[[P]] over [dp]
// CHECK: zero.assign @b0, %[[A]]
// CHECK: zero.return [norm] %[[N]]
//
// Stage 0 keeps everything everywhere: its norm needs no all-reduce.
// STAGE0: %[[G:.*]] = zero.micro_batches
// STAGE0: %[[R:.*]] = zero.all_reduce %[[G]] over [dp]
// STAGE0: %[[Q:.*]] = zero.sum_squares %[[R]] : !zero.value<128xf32, scaled = [dp : 1]>
// STAGE0-NEXT: zero.sqrt %[[Q]]
// STAGE0-NOT: zero.all_gather
// STAGE0-NOT: zero.reduce_scatter
