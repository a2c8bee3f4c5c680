// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of parameters that are sharded and of gradients over several axes, each by
// its name.

// value_c7
zero.mesh @m <["ep" = 2]>
// expected-error@+1 {{axis 'ep' is reduced and partial: it would be summed over twice}}
zero.step @s on @m normalize() (%a: !zero.value<8xf32, partial = [ep], reduced = [ep]>) {
  zero.return []
}

// -----

// parameter_c1
// expected-error@+1 {{must be replicated or sharded, got partial over 'dp'}}
zero.parameter @w : 8xf32, partial = [dp]

// -----

// parameter_c1
// expected-error@+1 {{must be replicated or sharded, got reduced over 'ep'}}
zero.parameter @w : 8xf32, sharded = [ep], reduced = [ep]

// -----

// parameter_c1
// expected-error@+1 {{must be unscaled and on the device}}
zero.parameter @w : 8xf32, space = host

// -----

// bucket_c5: rows that no axis shards.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.parameter @w : 8xf32, sharded = [tp]
// expected-error@+1 {{must have one row, or one dimension for each axis that shards its members in front of the last, got '!zero.value<2x8xf32>'}}
zero.bucket @b0 : 2x8xf32 arrives f32 [@w] offsets [0] extents [8]

// -----

// bucket_c5: a row that is sharded.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.parameter @w : 8xf32, sharded = [tp]
// expected-error@+1 {{dimension 0 must be sharded over one axis, got '!zero.value<2x8xf32, sharded = [tp : 1]>'}}
zero.bucket @b0 : 2x8xf32, sharded = [tp : 1] arrives f32 [@w] offsets [0] extents [8]

// -----

// bucket_c5: a member that is sharded otherwise.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.parameter @w : 8xf32
// expected-error@+1 {{member @w is '!zero.value<8xf32>', sharded over other axes than '!zero.value<2x8xf32, sharded = [tp]>'}}
zero.bucket @b0 : 2x8xf32, sharded = [tp] arrives f32 [@w] offsets [0] extents [8]

// -----

// backward_c3: a slice of what the rank holds whole.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be sharded over "tp" as the parameter is, '!zero.value<8xf32>'}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, sharded = [tp], partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, sharded = [tp], partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c3: a slice along the other dimension.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.parameter @w : 8x8xf32, sharded = [tp : 1]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be sharded over "tp" as the parameter is, '!zero.value<8x8xf32, sharded = [tp : 1]>'}}
    %d = zero.backward(@w) prescaled() : !zero.value<8x8xf32, sharded = [tp], partial = [dp, micro]>
    zero.yield %d : !zero.value<8x8xf32, sharded = [tp], partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c3: the tensor-parallel ranks' gradients are the same, and nobody said so.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be partial over "tp", or said to be 'replicated' there}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{is replicated over "tp", which is no axis of mesh @m}}
    %d = zero.backward(@w) prescaled() replicated [tp] : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w has a placement over 'tp', which is no axis of mesh @m}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro, tp]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro, tp]>
  }
  zero.return []
}

// -----

// backward_c3: of one pipeline stage, and of all.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 0]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be where @w is, '!zero.value<8xf32, on = [pp : 0]>'}}
    %d = zero.backward(@w) prescaled() replicated [pp] : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c7: an expert whose gradient lacks the other experts' batches.
zero.mesh @m <["edp" = 2, "ep" = 2]>
zero.parameter @w : 8xf32, sharded = [ep]
zero.step @s on @m normalize(edp : -1, ep : -1) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be partial or reduced over "ep", whose ranks have batches of their own, got '!zero.value<8xf32, sharded = [ep], partial = [edp, micro], scaled = [edp : 1, ep : 1]>', expected '!zero.value<8xf32, sharded = [ep], partial = [edp, micro], reduced = [ep], scaled = [edp : 1, ep : 1]>'}}
    %d = zero.backward(@w) prescaled()
        : !zero.value<8xf32, sharded = [ep], partial = [edp, micro], scaled = [edp : 1, ep : 1]>
    zero.yield %d : !zero.value<8xf32, sharded = [ep], partial = [edp, micro], scaled = [edp : 1, ep : 1]>
  }
  zero.return []
}

// -----

// backward_c7: a gradient that all data-parallel ranks are said to share.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize(dp : -1) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w must be partial or reduced over "dp"}}
    %d = zero.backward(@w) prescaled() replicated [dp] : !zero.value<8xf32, partial = [micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [micro], scaled = [dp : 1]>
  }
  zero.return []
}

// -----

// backward_c8
// expected-note@+1 {{give the axes that shard it a size that divides 8}}
zero.mesh @m <["dp" = 2, "tp" = 3]>
zero.parameter @w : 6x8xf32, sharded = [tp : 1]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{parameter @w has 8 elements in dimension 1, sharded over 3 ranks}}
    %d = zero.backward(@w) prescaled() : !zero.value<6x8xf32, sharded = [tp : 1], partial = [dp, micro]>
    zero.yield %d : !zero.value<6x8xf32, sharded = [tp : 1], partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c8: rows of another mesh.
// expected-note@+1 {{give the axes that shard it a size that divides 4}}
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.parameter @w : 8xf32, sharded = [tp]
zero.bucket @b0 : 4x8xf32, sharded = [tp] arrives f32 [@w] offsets [0] extents [8]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{bucket @b0 has 4 elements in dimension 0, sharded over 2 ranks}}
    %d = zero.backward(@b0) prescaled() : !zero.value<4x8xf32, sharded = [tp], partial = [dp, micro]>
    zero.yield %d : !zero.value<4x8xf32, sharded = [tp], partial = [dp, micro]>
  }
  zero.return []
}

// -----

// update_c3: what is a slice on each rank updates what is not.
zero.mesh @m <["dp" = 2, "tp" = 2]>
// expected-note@+1 {{@w is '!zero.value<8xf32>'}}
zero.parameter @w : 8xf32
zero.parameter @v : 8xf32, sharded = [tp]
zero.group @g [@w]
zero.group @h [@v]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %s: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%lr: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@w, @v) prescaled() replicated [tp]
        : !zero.value<8xf32, partial = [dp, micro]>, !zero.value<8xf32, sharded = [tp], partial = [dp, micro]>
    zero.yield %d#0, %d#1 : !zero.value<8xf32, partial = [dp, micro]>, !zero.value<8xf32, sharded = [tp], partial = [dp, micro]>
  }
  %r:2 = zero.reduce %g#0, %g#1 : !zero.value<8xf32, partial = [dp]>, !zero.value<8xf32, sharded = [tp], partial = [dp]>
  // expected-error@+1 {{gradient of @w must be placed as the parameter, got '!zero.value<8xf32, sharded = [tp]>', expected '!zero.value<8xf32>'}}
  zero.update @g with @sgd(%r#1) hyper(lr = %lr) : (!zero.value<8xf32, sharded = [tp]>), (!zero.value<f64>)
  zero.return []
}

// -----

// count_replicated_once_c1
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand must be replicated over 'dp', got '!zero.value<f64, partial = [dp]>'}}
  %o = zero.count_replicated_once %a over [dp] : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// all_gather_c1: the rows of tensor-parallel ranks are no slices of one.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zero.step @s on @m normalize() (%a: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<2x8xf32, sharded = [tp], partial = [dp, micro]>
    zero.yield %d : !zero.value<2x8xf32, sharded = [tp], partial = [dp, micro]>
  }
  %r = zero.reduce_scatter %g over [dp] : !zero.value<2x8xf32, sharded = [tp], partial = [dp]>
  // expected-error@+1 {{axes must be those that shard the last dimension, got '!zero.value<2x8xf32, sharded = [dp : 1, tp]>'}}
  %p = zero.all_gather %r over [tp] : !zero.value<2x8xf32, sharded = [dp : 1, tp]>
  zero.return []
}

// -----

// backward_c10: an exponent that a norm doubles.
zero.mesh @m <["dp" = 3]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize(accumulation : -1, dp : -5) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{has gradients of scale (accumulation : 1, dp : 5), expected exponents of -4 to 4, since a norm squares gradients; lower the exponent of 'dp' in normalize or prescaled}}
    %0 = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], scaled = [accumulation : 1, dp : 5]>
    zero.yield %0 : !zero.value<8xf32, partial = [dp, micro], scaled = [accumulation : 1, dp : 5]>
  }
  zero.return []
}

// -----

// backward_c10: exponents that go beyond the limit together.
zero.mesh @m <["dp" = 3]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize(accumulation : 3) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{has gradients of scale (accumulation : -6), expected exponents of -4 to 4}}
    %0 = zero.backward(@w) prescaled(accumulation : -3) : !zero.value<8xf32, partial = [dp, micro], scaled = [accumulation : -6]>
    zero.yield %0 : !zero.value<8xf32, partial = [dp, micro], scaled = [accumulation : -6]>
  }
  zero.return []
}

// -----

// backward_c10: a divisor whose square has more than 64 bits.
zero.mesh @m <["dp" = 1048576]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize(dp : -2) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{has gradients of scale (dp : 2), which divides them by up to 2^40 on mesh @m, expected at most 2^31, since a norm squares them; lower an exponent of normalize or prescaled}}
    %0 = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 2]>
    zero.yield %0 : !zero.value<8xf32, partial = [dp, micro], scaled = [dp : 2]>
  }
  zero.return []
}

// -----

// backward_c10: numbers of backward passes may be large.
zero.mesh @m <["dp" = 4]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize(accumulation : 1) () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{has gradients of scale (accumulation : -2), which multiplies them by up to 2^52 on mesh @m}}
    %0 = zero.backward(@w) prescaled(accumulation : -1) : !zero.value<8xf32, partial = [dp, micro], scaled = [accumulation : -2]>
    zero.yield %0 : !zero.value<8xf32, partial = [dp, micro], scaled = [accumulation : -2]>
  }
  zero.return []
}
