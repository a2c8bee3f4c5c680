// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of units and of memory that comes and goes, each by its name.

// transition_c7
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{unshard must lead to its own state and run no handlers: those of the unit run}}
  zrt.transition idle on unshard to open run []
  zrt.transition idle on reshard to idle run []
}

// -----

// transition_c7
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
  }
  zrt.transition idle on unshard to idle run []
  // expected-error@+1 {{reshard must lead to its own state and run no handlers}}
  zrt.transition idle on reshard to idle run [@h]
}

// -----

// transition_c7
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{state 'idle' has no transition on reshard}}
  zrt.transition idle on unshard to idle run []
}

// -----

// unit_table_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @a {
  }
  zrt.handler @b {
  }
  // expected-error@+1 {{refers to @u, which is no zero.unit of this module}}
  zrt.unit_table @u unshard @a reshard @b
}

// -----

// unit_table_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @a {
  }
  // expected-error@+1 {{refers to @b, which is no zrt.handler of this program}}
  zrt.unit_table @u unshard @a reshard @b
}

// -----

// unit_table_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @a {
  }
  zrt.handler @b {
  }
  zrt.handler @c {
  }
  zrt.handler @d {
  }
  // expected-note@+1 {{the other one is here}}
  zrt.unit_table @u unshard @a reshard @b
  // expected-error@+1 {{is a second table of unit @u}}
  zrt.unit_table @u unshard @c reshard @d
}

// -----

// unit_table_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @a {
  }
  zrt.handler @b {
  }
  // expected-error@+1 {{handler @b has another use}}
  zrt.unit_table @u unshard @a reshard @b
  // expected-note@+1 {{which is here}}
  zrt.transition idle on apply to idle run [@b]
}

// -----

// allocate_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role staging in device on_demand
  zrt.handler @h {
    // expected-error@+1 {{buffer @a has memory of its own, which is allocated and released on stream 'compute', got 'collective'}}
    zrt.allocate @a on collective
  }
}

// -----

// bucket_table_c9
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zero.bucket @b0 : 64xf32 arrives bf16 [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<64xbf16, partial = [dp]> role gradient in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @memory : !zero.value<64xbf16> role staging in device
  zrt.buffer @whole : !zero.value<64xbf16> role staging in device on_demand shares @memory
  zrt.kernel @store [read bf16, write bf16] scalars 0 {
  ^bb0(%a: bf16):
    zrt.yield %a : bf16
  }
  // expected-error@+1 {{buffer @whole is of a bucket whose unit has no zrt.unit_table: nothing would gather it}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @p unsharded @whole
}

// -----

// bucket_table_c9
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.bucket @b0 : 64xf32 arrives bf16 [@w] offsets [0] extents [64]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<64xbf16, partial = [dp]> role gradient in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role staging in device
  zrt.kernel @store [read bf16, write bf16] scalars 0 {
  ^bb0(%a: bf16):
    zrt.yield %a : bf16
  }
  // expected-error@+1 {{buffer @whole holds parameters while their unit is unsharded; it must be on demand, and on the device}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @p unsharded @whole
}

// -----

// bucket_table_c9
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.bucket @b0 : 64xf32 arrives bf16 [@w] offsets [0] extents [64]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<64xbf16, partial = [dp]> role gradient in device
  zrt.buffer @p : !zero.value<64xbf16> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role staging in device on_demand
  zrt.kernel @store [read bf16, write bf16] scalars 0 {
  ^bb0(%a: bf16):
    zrt.yield %a : bf16
  }
  // expected-error@+1 {{buffer @whole is for parameters that are sharded, and buffer @p is not}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @p unsharded @whole
}

// -----

// bucket_table_c9
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zero.bucket @b0 : 64xf32 arrives bf16 [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<64xbf16, partial = [dp]> role gradient in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role staging in device on_demand
  zrt.kernel @store [read bf16, write bf16] scalars 0 {
  ^bb0(%a: bf16):
    zrt.yield %a : bf16
  }
  zrt.handler @a {
  }
  zrt.handler @b {
  }
  zrt.unit_table @u unshard @a reshard @b
  // expected-error@+1 {{buffer @whole has an address of its own at each allocation, and a unit has one address; it must share memory of another buffer}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @p unsharded @whole
}

// -----

// record_c3: a unit may be gathered ahead, in a call without a stream of the caller
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on caller
  zrt.handler @a {
    // expected-error@+1 {{records the stream of the caller, and only arrive, measure, apply and reshard have one}}
    zrt.record @e
  }
  zrt.handler @b {
  }
  // expected-note@+1 {{which runs the handler}}
  zrt.unit_table @u unshard @a reshard @b
}

// -----

// wait_c2: behind reshard the stream of the caller waits for nothing
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zrt.program @p on @m inputs [] results [] [] {
  zrt.event @e on collective
  zrt.handler @a {
  }
  zrt.handler @b {
    // expected-error@+1 {{makes the stream of the caller wait, and only arrive and unshard do}}
    zrt.wait @e on caller
  }
  // expected-note@+1 {{which runs the handler}}
  zrt.unit_table @u unshard @a reshard @b
}

// -----

// unit_table_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16
zero.unit @u [@w]
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @a {
  }
  // expected-error@+1 {{has one handler, expected one for unshard and one for reshard}}
  zrt.unit_table @u unshard @a
}
