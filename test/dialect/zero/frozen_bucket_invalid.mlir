// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics

// frozen_bucket_c1
zero.parameter @w : 8xf32 frozen
zero.unit @u [@w]
// expected-error@+1 {{has no members: nothing would be gathered}}
zero.frozen_bucket @f0 : 0xf32 [] offsets [] extents [] unit @u

// -----

// frozen_bucket_c1
zero.parameter @w : 8xf32
zero.unit @u [@w]
// expected-error@+1 {{member @w is not frozen: its gradient needs a zero.bucket}}
zero.frozen_bucket @f0 : 32xf32 [@w] offsets [0] extents [32] unit @u

// -----

// frozen_bucket_c1
zero.parameter @v : 8xf32 frozen
zero.parameter @w : 8xf32 frozen
// expected-note@+1 {{the unit is here}}
zero.unit @u [@v]
// expected-error@+1 {{is of unit @u, and member @w is not}}
zero.frozen_bucket @f0 : 32xf32 [@w] offsets [0] extents [32] unit @u

// -----

// frozen_bucket_c1
zero.parameter @w : 8xf32 frozen
zero.unit @layer0 [@w]
// expected-error@+1 {{unit @layer1 is not a zero.unit of this module; did you mean @layer0?}}
zero.frozen_bucket @f0 : 32xf32 [@w] offsets [0] extents [32] unit @layer1

// -----

// frozen_bucket_c1
zero.parameter @w : 8xf32 frozen
zero.unit @u [@w]
// expected-note@+1 {{the other one is here}}
zero.frozen_bucket @f0 : 32xf32 [@w] offsets [0] extents [32] unit @u
// expected-error@+1 {{member @w is in another frozen_bucket as well}}
zero.frozen_bucket @f1 : 32xf32 [@w] offsets [0] extents [32] unit @u

// -----

// frozen_bucket_c2
zero.parameter @v : 8xf32 frozen
zero.parameter @w : 8xf32 frozen
zero.unit @u [@v, @w]
// expected-error@+1 {{member @w must begin at 32, where the one before ends, got 40}}
zero.frozen_bucket @f0 : 64xf32 [@v, @w] offsets [0, 40] extents [32, 24] unit @u

// -----

// frozen_bucket_c2
zero.parameter @w : 33xf32 frozen
zero.unit @u [@w]
// expected-error@+1 {{member @w has 33 elements and an interval of 32}}
zero.frozen_bucket @f0 : 32xf32 [@w] offsets [0] extents [32] unit @u

// -----

// frozen_bucket_c2
zero.parameter @w : 8xf32 frozen
zero.unit @u [@w]
// expected-error@+1 {{has 1 member but 1 offset and 2 extents}}
zero.frozen_bucket @f0 : 32xf32 [@w] offsets [0] extents [16, 16] unit @u

// -----

// frozen_bucket_c3
zero.parameter @w : 8xf32 frozen
zero.unit @u [@w]
// expected-error@+1 {{member @w is stored in 'f32' and the bucket in 'bf16'}}
zero.frozen_bucket @f0 : 32xbf16 [@w] offsets [0] extents [32] unit @u

// -----

// frozen_bucket_c3: rows that no axis shards.
zero.parameter @w : 8xf32 frozen
zero.unit @u [@w]
// expected-error@+1 {{must have one row, or one dimension for each axis that shards its members}}
zero.frozen_bucket @f0 : 2x32xf32, sharded = [dp : 1] [@w] offsets [0] extents [32] unit @u

// -----

// frozen_bucket_c3
zero.parameter @w : 8x8xf32, sharded = [tp] frozen
zero.unit @u [@w]
// expected-error@+1 {{sharded over other axes than '!zero.value<64xf32, sharded = [tp]>'}}
zero.frozen_bucket @f0 : 64xf32, sharded = [tp] [@w] offsets [0] extents [64] unit @u

// -----

// frozen_bucket_c3
zero.parameter @w : 8xf32, on = [pp : 1] frozen
zero.unit @u [@w]
// expected-error@+1 {{on other stages than}}
zero.frozen_bucket @f0 : 32xf32 [@w] offsets [0] extents [32] unit @u

// -----

// frozen_bucket_c3
zero.parameter @w : 8xf32 frozen
zero.unit @u [@w]
// expected-error@+1 {{must be replicated or sharded, got '!zero.value<32xf32, partial = [dp]>'}}
zero.frozen_bucket @f0 : 32xf32, partial = [dp] [@w] offsets [0] extents [32] unit @u
