// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s

zero.parameter @w : 8x8xbf16
zero.parameter @b : 8xbf16
// CHECK: zero.unit @layer0 [@w, @b]
zero.unit @layer0 [@w, @b]
// CHECK: zero.unit @layer1 [@v] gather_dtype bf16 kept
zero.parameter @v : 8xf32
zero.unit @layer1 [@v] gather_dtype bf16 kept
// CHECK: zero.bucket @b0 : 96xf32 arrives bf16 [@w, @b] offsets [0, 64] extents [64, 32] unit @layer0
zero.bucket @b0 : 96xf32 arrives bf16 [@w, @b] offsets [0, 64] extents [64, 32] unit @layer0
