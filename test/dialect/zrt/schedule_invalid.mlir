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

// record_c3: a backward pass begins without a stream of the caller
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on caller
  zrt.handler @h {
    // expected-error@+1 {{records the stream of the caller, and only arrive, measure, apply and reshard have one}}
    zrt.record @e
  }
  zrt.transition idle on arrive to idle run [@h]
  // expected-note@+1 {{which runs the handler}}
  zrt.transition idle on begin to idle run [@h]
}

// -----

// record_c3: a sequence closes its buckets in other calls, too
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
  zrt.bucket_table @b0 into @g store @store add @store parameters @w
  zrt.event @e on caller
  zrt.handler @h {
    // expected-error@+1 {{records the stream of the caller, and only arrive, measure, apply and reshard have one}}
    zrt.record @e
  }
  // expected-note@+1 {{which runs the handler}}
  zrt.sequence @s [@b0] run [@h]
}

// -----

// wait_c2: nothing arrives at apply
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on compute
  zrt.handler @h {
    zrt.record @e
    // expected-error@+1 {{makes the stream of the caller wait, and only arrive and unshard do}}
    zrt.wait @e on caller
  }
  // expected-note@+1 {{which runs the handler}}
  zrt.transition idle on apply to idle run [@h]
}

// -----

// wait_c2: once in all handlers
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on compute
  zrt.handler @g {
    zrt.record @e
    zrt.wait @e on caller
  }
  zrt.handler @h {
    zrt.wait @e on caller
  }
  zrt.transition idle on begin to first run []
  // expected-error@+1 {{gives the arriving gradient back to the caller 2 times, expected once}}
  zrt.transition first on arrive to first run [@g, @h]
}

// -----

// handler_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @a [0.0]
  zrt.handler @h {
    // expected-error@+1 {{queues work to stream 'caller', which is not a stream of the device}}
    zrt.all_reduce_scalars @a over [dp] on caller
  }
}

// -----

// Right: apply follows the caller's stream, and arrivals give gradients back.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on compute
  zrt.event @f on caller
  zrt.event @g on caller
  zrt.handler @arrive {
    zrt.record @f
    zrt.wait @f on compute
    zrt.record @e
    zrt.wait @e on caller
  }
  zrt.handler @finish {
    zrt.record @g
    zrt.wait @g on compute
    zrt.wait @g on to_device
  }
  zrt.transition idle on begin to first run []
  zrt.transition first on arrive to first run [@arrive]
  zrt.transition first on apply to idle run [@finish]
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
  zrt.event @e on caller
  // expected-error@+1 {{lists event @e of stream 'caller', for which the caller has not to wait}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @w readable [@e]
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

// sequence_c4: every rank has all streams, and so records and waits.
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
  zrt.sequence @s [@b0] run [@h]
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
