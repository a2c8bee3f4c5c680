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

