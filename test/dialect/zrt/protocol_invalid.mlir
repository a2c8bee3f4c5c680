// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of sequences and of shared memory, each by its name.

// buffer_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-note@+1 {{the memory is that of this one}}
  zrt.buffer @a : !zero.value<8xbf16> role gradient in device
  // expected-error@+1 {{takes 32 bytes and shares a memory of 16}}
  zrt.buffer @b : !zero.value<8xf32> role gradient in device shares @a
}

// -----

// buffer_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-note@+1 {{the memory is that of this one}}
  zrt.buffer @a : !zero.value<8xf32> role gradient in host
  // expected-error@+1 {{shares memory with a buffer of another space}}
  zrt.buffer @b : !zero.value<8xf32> role gradient in device shares @a
}

// -----

// buffer_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  // expected-note@+1 {{the memory is that of this one}}
  zrt.buffer @b : !zero.value<8xf32> role gradient in device shares @a
  // expected-error@+1 {{shares memory with a buffer that has none of its own}}
  zrt.buffer @c : !zero.value<8xf32> role gradient in device shares @b
}

// -----

// buffer_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-note@+1 {{the memory is that of this one}}
  zrt.buffer @a : !zero.value<8xf32> role gradient in device on_demand
  // expected-error@+1 {{shares memory that is on demand, and may not be there}}
  zrt.buffer @b : !zero.value<8xf32> role gradient in device shares @a
}

// -----

// sequence_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
  }
  // expected-error@+1 {{has 0 buckets and 1 handler}}
  zrt.sequence @s [] run [@h]
}

// -----

// sequence_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @p : !zero.value<8xf32> role parameter in device
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.bucket_table @b0 into @g store @k add @k parameters @p
  // expected-error@+1 {{bucket @b0 has arrivals and is not listed}}
  zrt.sequence @s [] run []
}

// -----

// transition_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{refers to @none, which is no zrt.sequence of this program}}
  zrt.transition idle on arrive to idle run [] sequence @none
}

// -----

// sequence_c4: ranks of pp 1 never close the bucket of pp 0.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 0]
// expected-note@+1 {{bucket is declared here}}
zero.bucket @b0 : 8xf32, on = [pp : 0] arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @other : !zero.value<8xf32, on = [pp : 1]> role gradient in device
  zrt.handler @h {
    zrt.fill_missing @b0
    // expected-error@+1 {{runs where bucket @b0 is closed, on its pipeline stages only, and works on what is elsewhere, too}}
    zrt.all_gather @other over [dp]
  }
  zrt.sequence @s [@b0] run [@h]
}

// -----

// sequence_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    zrt.fill_missing @b1
  }
  // expected-error@+1 {{handler @h of bucket @b0 fills what is missing in @b1}}
  zrt.sequence @s [@b0] run [@h]
}

// -----

// transition_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.sequence @s [] run []
  // expected-note@+1 {{another one is here}}
  zrt.transition open on arrive to open run [] sequence @s
  // expected-error@+1 {{events of state 'open' must have one sequence, or none}}
  zrt.transition open on apply to idle run []
}

// -----

// transition_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.sequence @s [] run []
  // expected-error@+1 {{begins a backward pass, and has a sequence}}
  zrt.transition idle on begin to open run [] sequence @s
}

// -----

// transition_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.sequence @s [] run []
  zrt.transition idle on begin to open run []
  // expected-error@+1 {{begins a backward pass, and has a sequence}}
  zrt.transition idle on begin_last to open run [] sequence @s
}

// -----

// transition_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{state 'idle' has no transition on begin, which callers without a hint need}}
  zrt.transition idle on begin_last to open run []
}

// -----

// transition_c6
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.sequence @s [] run []
  zrt.transition idle on begin to open run []
  zrt.transition open on accumulate to between run []
  // expected-error@+1 {{has a sequence, and no gradient arrives in state 'between'}}
  zrt.transition between on apply to idle run [] sequence @s
}

// -----

// transition_c5
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{leads to state 'measured', which must take apply and discard, and has no transition on discard}}
  zrt.transition idle on measure to measured run []
  zrt.transition measured on apply to idle run []
}

// -----

// transition_c5
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{leads to state 'measured', which takes begin: only apply and discard may follow measure}}
  zrt.transition idle on measure to measured run []
  zrt.transition measured on apply to idle run []
  zrt.transition measured on discard to idle run []
  // expected-note@+1 {{the other transition is here}}
  zrt.transition measured on begin to idle run []
}

// -----

// copy_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32, partial = [dp]> role gradient in device
  zrt.buffer @b : !zero.value<8xf32, sharded = [dp]> role gradient in host
  zrt.handler @h {
    // expected-error@+1 {{changes what a value is, from '!zero.value<8xf32, partial = [dp]>' to '!zero.value<8xf32, sharded = [dp]>'}}
    zrt.copy @a to @b
  }
}

// -----

// set_role_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  zrt.buffer @b : !zero.value<8xf32> role gradient in device shares @a
  zrt.handler @h {
    // expected-error@+1 {{buffer @b has no memory of its own}}
    zrt.set_role @b as accumulator
  }
}

// -----

// keep_on_root_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @sum : !zero.value<8xf32, sharded = [dp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{buffer @sum must not be sharded over ["dp"], got '!zero.value<8xf32, sharded = [dp]>'}}
    zrt.keep_on_root @sum over [dp]
  }
}

// -----

// keep_on_root_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @sum : !zero.value<8xf32, partial = [dp]> role gradient in host
  zrt.handler @h {
    // expected-error@+1 {{buffer @sum must be on the device, got host}}
    zrt.keep_on_root @sum over [dp]
  }
}

// -----

// keep_on_root_c2
zero.mesh @m <["dp" = 2, "tp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @sum : !zero.value<8xf32, partial = [dp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{makes addends over "tp", and buffer @sum is no sum over it, '!zero.value<8xf32, partial = [dp]>'}}
    zrt.keep_on_root @sum over [dp, tp]
  }
}
