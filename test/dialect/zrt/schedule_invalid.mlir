// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of streams and events, each by its name.

// record_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{refers to @e, which is no zrt.event of this program}}
    zrt.record @e
  }
}

// -----

// record_c2: twice in a handler
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on compute
  zrt.handler @h {
    // expected-note@+1 {{the other one is here}}
    zrt.record @e
    // expected-error@+1 {{event @e is recorded by another call: declare an event for each}}
    zrt.record @e
  }
}

// -----

// record_c2: in two handlers
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on compute
  zrt.event @f on compute
  zrt.handler @first {
    // expected-note@+1 {{the other one is here}}
    zrt.record @e
  }
  zrt.handler @next {
    zrt.record @f
    // expected-error@+1 {{event @e is recorded by another call: declare an event for each}}
    zrt.record @e
  }
}

// -----

// Right: an event for each call, and one that nothing records.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on compute
  zrt.event @f on compute
  zrt.event @g on host
  zrt.handler @h {
    zrt.record @e
    zrt.record @f
    zrt.wait @g on compute
  }
}

// -----

// wait_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{refers to @e, which is no zrt.event of this program}}
    zrt.wait @e on compute
  }
}

// -----

// wait_c1: a stream runs in order
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on collective
  zrt.handler @h {
    // expected-error@+1 {{event @e is of stream 'collective' itself, which runs in order}}
    zrt.wait @e on collective
  }
}

// -----

// A stream that does not exist.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{unknown keyword 'copies'}}
  zrt.event @e on copies
}

// -----

// bucket_table_c8
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @w : !zero.value<8xf32> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  // expected-error@+1 {{refers to @e, which is no zrt.event of this program}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @w readable [@e]
}

// -----

// bucket_table_c8
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @w : !zero.value<8xf32> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  // expected-error@+1 {{refers to @g, which is no zrt.event of this program}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @w writable [@g]
}

// -----

// bucket_table_c8
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @w : !zero.value<8xf32> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.event @e on collective
  zrt.event @f on compute
  // expected-error@+1 {{gradients are written on stream 'compute', of which event @f is}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @w writable [@e, @f] readable [@f]
}

// -----

// Right: parameters that the compute stream writes are read by another one.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @w : !zero.value<8xf32> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.event @e on collective
  zrt.event @f on compute
  zrt.bucket_table @b0 into @g store @store add @store parameters @w writable [@e] readable [@e, @f]
}

// -----

// sequence_c6: every rank has all streams, and so records and waits.
zero.mesh @m <["pp" = 2, "dp" = 2]>
zero.parameter @w : 8xf32, on = [pp : 0]
zero.bucket @b0 : 8xf32, on = [pp : 0] arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32, partial = [dp], on = [pp : 0]> role gradient in device
  zrt.buffer @w : !zero.value<8xf32, on = [pp : 0]> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.event @filled on compute
  zrt.event @reduced on collective
  zrt.bucket_table @b0 into @g store @store add @store parameters @w writable [@reduced]
  zrt.handler @h {
    zrt.fill_missing @b0
    zrt.record @filled
    zrt.wait @filled on collective
    zrt.all_reduce @g over [dp] on collective
    zrt.record @reduced
  }
  zrt.sequence @s [@b0] run [@h] window 2
}

// -----

// launch_c10
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{runs a kernel on the device, got stream 'collective'}}
    zrt.launch @k [@a] over @s on collective
  }
}

// -----

// launch_c10
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{runs a kernel on the device, got stream 'host'}}
    zrt.launch @k [@a] over @s on host
  }
}

// -----

// launch_c10
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in host
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{runs a kernel on the host, got stream 'to_host'}}
    zrt.launch @k [@a] over @s on to_host
  }
}

// -----

// Right.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in host
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    zrt.launch @k [@a] over @s on host
  }
}

// -----

// Right: everything on one stream.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in host
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    zrt.launch @k [@a] over @s
  }
}
