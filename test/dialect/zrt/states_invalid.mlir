// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of what a checkpoint saves, each by its name.

// scalar_state_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @s [0.0]
  // expected-error@+1 {{index 1 is out of range, @s has 1 scalar slot}}
  zrt.scalar_state "t" in @s[1]
}

// -----

// scalar_state_c2: a checkpoint would restore one over the other.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @s [0.0, 0.0]
  // expected-note@+1 {{the other one is here}}
  zrt.scalar_state "a.b.c" in @s[0]
  // expected-error@+1 {{role 'a.b.c' is taken: rename a parameter group, a loss scale, a schedule or a counter}}
  zrt.scalar_state "a.b.c" in @s[1]
}

// -----

// state_c4: a checkpoint would have two values of each element.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role parameter in device
  zrt.buffer @b : !zero.value<8xf32> role parameter in device
  // expected-note@+1 {{the other one is here}}
  zrt.state parameter of @b0 in @a
  // expected-error@+1 {{role 'parameter' of @b0 is in @a already, got @b as well; leave one of them out}}
  zrt.state parameter of @b0 in @b
}

// -----

// state_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role state in device
  // expected-error@+1 {{refers to @b0, which is no zero.bucket of this module}}
  zrt.state m of @b0 in @a
}

// -----

// state_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<16xf32> role state in device
  // expected-error@+1 {{buffer @a has other rows than bucket @b0}}
  zrt.state m of @b0 in @a
}

// -----

// state_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role state in device on_demand
  // expected-error@+1 {{buffer @a lives across steps and must not be on demand}}
  zrt.state m of @b0 in @a
}

// -----

// accumulator_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  // expected-error@+1 {{refers to @b0, which is no zero.bucket of this module}}
  zrt.accumulator of @b0 in @a prescaled ()
}

// -----

// accumulator_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{refers to @a, which is no zrt.buffer of this program}}
  zrt.accumulator of @b0 in @a prescaled ()
}

// -----

// accumulator_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<16xf32> role gradient in device
  // expected-error@+1 {{buffer @a has other rows than bucket @b0}}
  zrt.accumulator of @b0 in @a prescaled ()
}

// -----

// accumulator_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role state in device
  // expected-error@+1 {{buffer @a has role state, expected gradient or accumulator}}
  zrt.accumulator of @b0 in @a prescaled ()
}

// -----

// accumulator_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @a : !zero.value<8xf32> role gradient in device shares @g
  // expected-error@+1 {{buffer @a lives across backward passes and must not share memory}}
  zrt.accumulator of @b0 in @a prescaled ()
}

// -----

// accumulator_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  // expected-note@+1 {{the other one is here}}
  zrt.accumulator of @b0 in @a prescaled ()
  // expected-error@+1 {{@b0 has an accumulator already}}
  zrt.accumulator of @b0 in @a prescaled ()
}

// -----

// accumulator_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.parameter @v : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zero.bucket @b1 : 8xf32 arrives f32 [@v] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @w : !zero.value<8xf32> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.kernel @add [read f32, update f32] scalars 0 {
  ^body(%g: f32, %sum: f32):
    %s = arith.addf %g, %sum : f32
    zrt.yield %s : f32
  }
  zrt.accumulator of @b0 in @g prescaled ()
  // expected-error@+1 {{@b1 has no accumulator, and other buckets have; give it one, or leave out all of them}}
  zrt.bucket_table @b1 into @g store @store add @add parameters @w
}

// -----

// accumulator_c5
// expected-note@+1 {{axes are declared here}}
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  // expected-error@+1 {{arrival names 'tp', which is neither accumulation, tokens, loss_scale nor an axis of mesh @m}}
  zrt.accumulator of @b0 in @a prescaled (tp : -1)
}

// -----

// program_c2
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{names "tp", which is no axis of mesh @m}}
zrt.program @p on @m batches [tp] inputs [] results [] [] {
}

// -----

// program_c2
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{names axis "dp" twice}}
zrt.program @p on @m batches [dp, dp] inputs [] results [] [] {
}
