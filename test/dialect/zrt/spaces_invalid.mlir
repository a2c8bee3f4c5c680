// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of buffers in the memories of device and host, each by its name.

// buffer_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{space is said by 'in', not by the type '!zero.value<8xf32, space = host>'}}
  zrt.buffer @b : !zero.value<8xf32, space = host> role state in host
}

// -----

// copy_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role state in device
  zrt.buffer @b : !zero.value<8xbf16> role state in host
  zrt.handler @h {
    // expected-error@+1 {{needs buffers of one shape and type, got '!zero.value<8xf32>' and '!zero.value<8xbf16>'}}
    zrt.copy @a to @b
  }
}

// -----

// copy_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role state in device
  zrt.handler @h {
    // expected-error@+1 {{copies @a to itself}}
    zrt.copy @a to @a
  }
}

// -----

// all_gather_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role parameter in host
  zrt.handler @h {
    // expected-error@+1 {{buffer @a must be on the device, got host}}
    zrt.all_gather @a over [dp]
  }
}

// -----

// reduce_scatter_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32, partial = [dp]> role gradient in device
  zrt.buffer @b : !zero.value<8xf32, sharded = [dp]> role gradient in host
  zrt.handler @h {
    // expected-error@+1 {{buffer @b must be on the device, got host}}
    zrt.reduce_scatter @a to @b over [dp]
  }
}

// -----

// launch_c7
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  zrt.buffer @b : !zero.value<8xf32> role state in host
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @all ends [8] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{buffer @b is on the host and @a on the device}}
    zrt.launch @k [@a, @b] over @all
  }
}

// -----

// bucket_table_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in host
  zrt.buffer @p : !zero.value<8xf32> role parameter in device
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  // expected-error@+1 {{buffer @g must be on the device, got host}}
  zrt.bucket_table @b0 into @g store @k add @k parameters @p
}

// -----

// bucket_table_c5
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @p : !zero.value<8xbf16> role parameter in device
  zrt.buffer @s : !zero.value<8xf32> role parameter in host
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  // expected-error@+1 {{staging buffer @s holds 'f32' and the parameters are 'bf16'}}
  zrt.bucket_table @b0 into @g store @k add @k parameters @p staging @s
}
