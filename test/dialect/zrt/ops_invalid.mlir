// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of scheduled programs, each by its name.

// program_c1
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{refers to @lr, which is no zrt.slots of this program}}
zrt.program @p on @m inputs [@lr] results [] [] {
}

// -----

// slots_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{needs at least one initial value}}
  zrt.slots @s []
}

// -----

// buffer_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{type must be a !zero.value of one row, or of one dimension for each axis that shards rows in front of the last, got '!zero.value<2x2xf32>'}}
  zrt.buffer @b : !zero.value<2x2xf32> role state in device
}

// -----

// buffer_c2
zero.mesh @m <["dp" = 3]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{holds rows of 64 elements, which do not divide evenly over 3 ranks}}
  zrt.buffer @b : !zero.value<64xf32, sharded = [dp]> role state in device
}

// -----

// program_c1
// expected-error@+1 {{mesh @m is not a zero.mesh of this module}}
zrt.program @p on @m inputs [] results [] [] {
}

// -----

// A role that does not exist.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{unknown keyword 'gradients'}}
  zrt.buffer @b : !zero.value<2xf32> role gradients in device
}

// -----

// kernel_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{body must take ('bf16'), got ('f32')}}
  zrt.kernel @k [read bf16, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
}

// -----

// kernel_c5
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{has 2 operand types and 1 access}}
  "zrt.kernel"() <{accesses = [#zrt<access read>], num_scalars = 0 : i64, operand_types = [f32, f32], sym_name = "k"}> ({
  ^body(%g: f32):
    "zrt.yield"(%g) : (f32) -> ()
  }) : () -> ()
}

// -----

// kernel_c6
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{takes -1 scalars, expected 0 to 4096}}
  zrt.kernel @k [read f32] scalars -1 {
  ^body(%g: f32):
    zrt.yield
  }
}

// -----

// kernel_c6
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{takes 4611686018427387904 scalars, expected 0 to 4096}}
  zrt.kernel @k [read f32] scalars 4611686018427387904 {
  ^body(%g: f32):
    zrt.yield
  }
}

// -----

// kernel_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{body must yield ('f32'), got ('bf16')}}
  zrt.kernel @k [read bf16, write f32] scalars 0 {
  ^body(%g: bf16):
    zrt.yield %g : bf16
  }
}

// -----

// kernel_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    // expected-error@+1 {{is not allowed in a kernel}}
    %x = builtin.unrealized_conversion_cast %g : f32 to f32
    zrt.yield %x : f32
  }
}

// -----

// kernel_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{is predicated and has no scalar}}
  zrt.kernel @k [update f32] scalars 0 predicated {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
}

// -----

// load_slot_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @s [0.0]
  zrt.scalars @f {
    // expected-error@+1 {{index 1 is out of range, @s has 1 scalar slot}}
    %x = zrt.load_slot @s[1]
    zrt.yield
  }
}

// -----

// scalars_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{must end with zrt.yield of nothing}}
  zrt.scalars @f {
    %x = arith.constant 0.0 : f64
    zrt.yield %x : f64
  }
}

// -----

// segments_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{ends must increase, got 32 after 64}}
  zrt.segments @s ends [64, 32] rows [] scalars []
}

// -----

// segments_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @row [0.0]
  // expected-error@+1 {{row 1 is out of range, got 1 row}}
  zrt.segments @s ends [64] rows [1] scalars [@row]
}

// -----

// transition_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-note@+1 {{the other one is here}}
  zrt.transition idle on begin to first run []
  // expected-error@+1 {{state 'idle' has two transitions on begin}}
  zrt.transition idle on begin to idle run []
}

// -----

// transition_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{refers to @h, which is no zrt.handler of this program}}
  zrt.transition idle on begin to first run [@h]
}

// -----

// handler_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{is no call of the runtime and not allowed in a zrt.handler}}
    %x = arith.constant 0.0 : f64
  }
}

// -----

// allocate_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @b : !zero.value<64xf32> role state in device
  zrt.handler @h {
    // expected-error@+1 {{buffer @b is not on demand}}
    zrt.allocate @b
  }
}

// -----

// fill_missing_c1: a close that fills nothing.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{bucket @b0 has no zrt.bucket_table in this program}}
    zrt.fill_missing @b0
  }
}

// -----

// reduce_scatter_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.buffer @b : !zero.value<64xf32> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{needs a full source and a target sharded over ["dp"] with the same rows}}
    zrt.reduce_scatter @a to @b over [dp]
  }
}

// -----

// all_reduce_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, sharded = [dp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{buffer @a must not be sharded}}
    zrt.all_reduce @a over [dp]
  }
}

// -----

// launch_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{kernel @k has 2 operands, got 1}}
    zrt.launch @k [@a] over @s
  }
}

// -----

// launch_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [32] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{buffer @a holds 64 elements and the segments end at 32}}
    zrt.launch @k [@a] over @s
  }
}

// -----

// launch_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, sharded = [dp]> role gradient in device
  zrt.kernel @k [update f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{buffer @a is sharded and the launch is not 'own'}}
    zrt.launch @k [@a] over @s
  }
}

// -----

// launch_c5
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.kernel @k [read f32] scalars 0 sums {
  ^body(%g: f32):
    %x = arith.extf %g : f32 to f64
    zrt.yield %x : f64
  }
  zrt.segments @s ends [64] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{a scalar slot for the sum is given exactly if the kernel sums, over one segment}}
    zrt.launch @k [@a] over @s
  }
}

// -----

// launch_c6
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.slots @row [0.0]
  zrt.kernel @k [update f32] scalars 2 {
  ^body(%g: f32, %s: f64, %t: f64):
    zrt.yield %g : f32
  }
  zrt.segments @s ends [64] rows [0] scalars [@row]
  zrt.handler @h {
    // expected-error@+1 {{kernel @k takes 2 scalars, @row has 1}}
    zrt.launch @k [@a] over @s
  }
}

// -----

// reduce_scatter_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32> role gradient in device
  zrt.buffer @b : !zero.value<64xbf16, sharded = [dp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{sums in 'bf16', which does not hold every number of the 'f32' that travel}}
    zrt.reduce_scatter @a to @b over [dp]
  }
}

// -----

// all_reduce_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, partial = [dp]> role gradient in device
  zrt.buffer @b : !zero.value<64xbf16, partial = [dp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{sums in 'bf16', which does not hold every number of the 'f32' that travel}}
    zrt.all_reduce @a to @b over [dp]
  }
}

// -----

// all_reduce_c2: other elements
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xbf16, partial = [dp]> role gradient in device
  zrt.buffer @b : !zero.value<32xf32, partial = [dp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{needs a target that is placed as the buffer}}
    zrt.all_reduce @a to @b over [dp]
  }
}

// -----

// all_reduce_c2: in place says nothing of a target
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<64xf32, partial = [dp]> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{target is the buffer itself; leave 'to' out}}
    zrt.all_reduce @a to @a over [dp]
  }
}

// -----

// all_reduce_c2: others would read addends where sums are already
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @b : !zero.value<64xf32, partial = [dp]> role gradient in device
  zrt.buffer @a : !zero.value<64xbf16, partial = [dp]> role gradient in device shares @b
  zrt.handler @h {
    // expected-error@+1 {{target @b shares the memory of buffer @a}}
    zrt.all_reduce @a to @b over [dp]
  }
}
