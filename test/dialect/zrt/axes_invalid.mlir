// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of calls over some axes of a mesh, each by its name.

// program_c2
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{names "ep", which is no axis of mesh @m}}
    zrt.all_reduce @a over [ep]
  }
}

// -----

// program_c2
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{names axis "dp" twice}}
    zrt.all_reduce @a over [dp, dp]
  }
}

// -----

// program_c2
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{needs an axis}}
    zrt.all_gather @a over []
  }
}

// -----

// program_c2
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{names "ep", which is no axis of mesh @m}}
  zrt.buffer @a : !zero.value<64xf32, sharded = [ep]> role gradient in device
}

// -----

// buffer_c1: rows that no axis shards.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{type must be a !zero.value of one row}}
  zrt.buffer @a : !zero.value<2x64xf32, sharded = [dp : 1]> role gradient in device
}

// -----

// buffer_c2: slices of a row.
zero.mesh @m <["dp" = 3, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{holds rows of 64 elements, which do not divide evenly over 3 ranks}}
  zrt.buffer @a : !zero.value<2x64xf32, sharded = [tp, dp : 1]> role gradient in device
}

// -----

// count_replicated_once_c1
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @s [0.0, 0.0]
  zrt.handler @h {
    // expected-error@+1 {{index 2 is out of range, @s has 2 scalar slots}}
    zrt.count_replicated_once @s[2] over [tp]
  }
}

// -----

// launch_c4: slices over other axes than those of 'own'.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, sharded = [dp]> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{buffer @a is sharded and the launch is not 'own' over its axes}}
    zrt.launch @k [@a] over @s own [tp]
  }
}

// -----

// reduce_scatter_c1: a target that is divided over other axes.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, partial = [dp]> role gradient in device
  zrt.buffer @b : !zero.value<64xf32, sharded = [tp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{needs a full source and a target sharded over ["dp"] with the same rows}}
    zrt.reduce_scatter @a to @b over [dp]
  }
}

// -----

// all_reduce_c1: slices of what is summed.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, sharded = [dp]> role gradient in device
  zrt.handler @h {
    zrt.all_reduce @a over [tp]
    // expected-error@+1 {{buffer @a must not be sharded over ["dp"], got '!zero.value<64xf32, sharded = [dp]>'}}
    zrt.all_reduce @a over [dp]
  }
}

// -----

// copy_c3: slices over one axis are no slices over another.
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, sharded = [dp]> role gradient in device
  zrt.buffer @b : !zero.value<64xf32, sharded = [tp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{copies slices over other axes, from '!zero.value<64xf32, sharded = [dp]>' to '!zero.value<64xf32, sharded = [tp]>'}}
    zrt.copy @a to @b
  }
}

// -----

// buffer_c2
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{has 4 rows in dimension 0 for 2 ranks}}
  zrt.buffer @a : !zero.value<4x64xf32, sharded = [tp]> role gradient in device
}

// -----

// launch_c3
zero.mesh @m <["ep" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<2x64xf32, sharded = [tp]> role gradient in device
  zrt.buffer @b : !zero.value<2x64xf32, sharded = [ep]> role gradient in device
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^bb0(%x: f32):
    zrt.yield %x : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{buffers @b and @a have other rows: '!zero.value<2x64xf32, sharded = [ep]>' and '!zero.value<2x64xf32, sharded = [tp]>'}}
    zrt.launch @k [@a, @b] over @s
  }
}

// -----

// launch_c8
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<2x64xf32, sharded = [tp]> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^bb0(%x: f32):
    zrt.yield %x : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{is 'own' over "tp", and ranks of it have other rows of buffer @a}}
    zrt.launch @k [@a] over @s own [tp]
  }
}

// -----

// program_c3
zero.mesh @m <["dp" = 3]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^bb0(%x: f32):
    zrt.yield %x : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{works on slices of @a, whose rows of 64 elements do not divide evenly over 3 ranks of ["dp"]}}
    zrt.launch @k [@a] over @s own [dp]
  }
}

// -----

// program_c3
zero.mesh @m <["dp" = 3]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{works on slices of @a, whose rows of 64 elements do not divide evenly over 3 ranks of ["dp"]}}
    zrt.all_gather @a over [dp]
  }
}

// -----

// reduce_scatter_c1: ranks of tp have other elements.
zero.mesh @m <["ep" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<2x64xf32, sharded = [tp]> role gradient in device
  zrt.buffer @b : !zero.value<2x64xf32, sharded = [tp : 1, ep]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{needs a full source and a target sharded over ["tp"] with the same rows}}
    zrt.reduce_scatter @a to @b over [tp]
  }
}

// -----

// reduce_scatter_c1: the rows of the target are those of other ranks.
zero.mesh @m <["dp" = 2, "ep" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<2x64xf32, sharded = [tp]> role gradient in device
  zrt.buffer @b : !zero.value<2x64xf32, sharded = [dp : 1, ep]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{needs a full source and a target sharded over ["dp"] with the same rows}}
    zrt.reduce_scatter @a to @b over [dp]
  }
}

// -----

// program_c2: what stands in a program by mistake has axes of another kind.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zero.mesh @inner <["dp" = 2]>
  zrt.slots @s [0.0]
  zrt.handler @h {
    // expected-error@+1 {{names "tp", which is no axis of mesh @m}}
    zrt.all_reduce_scalars @s over [tp]
  }
}
