// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s

zero.parameter @base : 8x8xbf16 frozen
zero.parameter @scale : 3xbf16 frozen
zero.parameter @split : 8x8xbf16, sharded = [tp] frozen
zero.parameter @w : 8xbf16
// A unit may have frozen parameters, trained ones, and both.
// CHECK: zero.unit @layer0 [@base, @scale, @split, @w]
zero.unit @layer0 [@base, @scale, @split, @w]
// The caller keeps the parameters.
// CHECK: zero.frozen_bucket @f0 : 128xbf16 [@base] offsets [0] extents [128] unit @layer0
zero.frozen_bucket @f0 : 128xbf16 [@base] offsets [0] extents [128] unit @layer0
// A rank keeps a slice, and one of its part of a parameter.
// CHECK: zero.frozen_bucket @f1 : 64xbf16, sharded = [dp], space = host [@scale] offsets [0] extents [64] unit @layer0
zero.frozen_bucket @f1 : 64xbf16, sharded = [dp], space = host [@scale] offsets [0] extents [64] unit @layer0
// CHECK: zero.frozen_bucket @f2 : 2x64xbf16, sharded = [dp : 1, tp] [@split] offsets [0] extents [64] unit @layer0
zero.frozen_bucket @f2 : 2x64xbf16, sharded = [dp : 1, tp] [@split] offsets [0] extents [64] unit @layer0
