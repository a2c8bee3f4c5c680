// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-assign-layout | FileCheck %s
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-assign-layout=bucket-bytes=64 | FileCheck %s --check-prefix=SMALL
//
// Parameters are laid out in reverse order, each at a multiple of 32 elements,
// and the bucket is a multiple of 32 elements per rank.
//
// CHECK: zero.bucket @b0 : 128xf32 arrives bf16 [@b, @w] offsets [0, 32] extents [32, 96]
//
// The step works on the bucket; gradients arrive in the accumulator's type.
// CHECK: %[[G:.*]] = zero.micro_batches in f32
// CHECK: zero.backward(@b0) prescaled (accumulation : -1) : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
// CHECK: %[[R:.*]] = zero.reduce %[[G]] : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]>
// CHECK: %[[N:.*]] = zero.norm %[[R]]
// CHECK: %[[C:.*]] = zero.clip %[[R]] by %[[N]]
//
// The outcome reads every gradient and what the ranks counted.
// CHECK: %[[A:.*]], %[[A2:.*]], %[[M:.*]] = zero.arrival_count over [dp]
// CHECK: %[[S:.*]]:3 = zero.reduce %[[A]], %[[A2]], %[[M]]
// CHECK: %[[T:.*]] = zero.norm %[[R]]
// CHECK: %[[V:.*]] = zero.outcome(%[[T]]) missing %[[S]]#2 backwards %[[S]]#0 squared %[[S]]#1 ranks 2
// CHECK: %[[P:.*]] = zero.prepare @all with @sgd(%{{.*}}) when %[[V]] yields 1
// CHECK: %[[U:.*]] = zero.update_bucket @b0 with @sgd(%[[C]]) when %[[V]] rows(%[[P]]) row_of [0, 0]
// CHECK: zero.assign @b0, %[[U]]
// CHECK-NOT: zero.update @
//
// A bucket is closed when the next parameter would make it too large.
// SMALL: zero.bucket @b0 : 64xf32 arrives bf16 [@b] offsets [0] extents [64]
// SMALL: zero.bucket @b1 : 64xf32 arrives bf16 [@w] offsets [0] extents [64]
