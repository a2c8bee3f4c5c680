// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Buffers of pipeline stages.

// buffer_c2
zero.mesh @m <["pp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{is on coordinate 2 of "pp", which mesh @m does not have}}
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 2]> role gradient in device
}

// -----

// buffer_c4: there is no memory to share.
zero.mesh @m <["pp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-note@+1 {{the memory is that of this one}}
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 0]> role gradient in device
  // expected-error@+1 {{shares memory with a buffer on other pipeline stages}}
  zrt.buffer @b : !zero.value<64xf32, on = [pp : 1]> role gradient in device shares @a
}

// -----

// program_c4: ranks of the other stage never come.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 0]> role gradient in device
  zrt.handler @h {
    zrt.all_gather @a over [dp]
    // expected-error@+1 {{is over "pp", and works on what is on some of its coordinates only, '!zero.value<64xf32, on = [pp : 0]>'}}
    zrt.all_gather @a over [dp, pp]
  }
}

// -----

// program_c4: owners are ranks of one stage.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 0]> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^bb0(%x: f32):
    zrt.yield %x : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{is over "pp", and works on what is on some of its coordinates only}}
    zrt.launch @k [@a] over @s own [pp]
  }
}

// -----

// launch_c3: no rank has both.
zero.mesh @m <["pp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 0]> role gradient in device
  zrt.buffer @b : !zero.value<64xf32, on = [pp : 1]> role gradient in device
  zrt.kernel @k [read f32, update f32] scalars 0 {
  ^bb0(%x: f32, %y: f32):
    zrt.yield %x : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{buffers @b and @a have other rows}}
    zrt.launch @k [@a, @b] over @s
  }
}

// -----

// copy_c3
zero.mesh @m <["pp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 0]> role gradient in device
  zrt.buffer @b : !zero.value<64xf32, on = [pp : 1]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{changes what a value is}}
    zrt.copy @a to @b
  }
}

// -----

// launch_c9: other stages would keep what they have.
zero.mesh @m <["pp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 0, pp : 1]> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^bb0(%x: f32):
    zrt.yield %x : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{writes buffer @a on the first stage alone}}
    zrt.launch @k [@a] over @s first_stage
  }
}

// -----

// launch_c9
zero.mesh @m <["pp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, on = [pp : 0]> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^bb0(%x: f32):
    zrt.yield %x : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{is for the first of several stages, and works on what is not on several}}
    zrt.launch @k [@a] over @s first_stage
  }
}

// -----

// sequence_c4: on stage 0 the bucket of stage 1 is not between them.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @x : 8xf32, on = [pp : 0]
zero.parameter @y : 8xf32, on = [pp : 1]
zero.parameter @z : 8xf32, on = [pp : 0]
zero.bucket @b0 : 8xf32, on = [pp : 0] arrives f32 [@x] offsets [0] extents [8]
zero.bucket @b1 : 8xf32, on = [pp : 1] arrives f32 [@y] offsets [0] extents [8]
zero.bucket @b2 : 8xf32, on = [pp : 0] arrives f32 [@z] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g0 : !zero.value<8xf32, partial = [dp], on = [pp : 0]> role gradient in device
  zrt.buffer @g1 : !zero.value<8xf32, partial = [dp], on = [pp : 1]> role gradient in device
  zrt.buffer @g2 : !zero.value<8xf32, partial = [dp], on = [pp : 0]> role gradient in device shares @g0
  zrt.buffer @p0 : !zero.value<8xf32, on = [pp : 0]> role parameter in device
  zrt.buffer @p1 : !zero.value<8xf32, on = [pp : 1]> role parameter in device
  zrt.buffer @p2 : !zero.value<8xf32, on = [pp : 0]> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^bb0(%x: f32):
    zrt.yield %x : f32
  }
  zrt.kernel @add [read f32, update f32] scalars 0 {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    zrt.yield %z : f32
  }
  zrt.bucket_table @b0 into @g0 store @store add @add parameters @p0
  zrt.bucket_table @b1 into @g1 store @store add @add parameters @p1
  zrt.bucket_table @b2 into @g2 store @store add @add parameters @p2
  zrt.handler @h0 {
    zrt.fill_missing @b0
  }
  zrt.handler @h1 {
    zrt.fill_missing @b1
  }
  zrt.handler @h2 {
    zrt.fill_missing @b2
  }
  // expected-error@+1 {{buckets @b0 and @b2 may be open together, and their gradients share the memory of @g0}}
  zrt.sequence @s [@b0, @b1, @b2] run [@h0, @h1, @h2] window 2
}
