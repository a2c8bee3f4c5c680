// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of tables and of calls that name them, each by its name.

// all_reduce_scalars_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{refers to @none, which is no zrt.slots of this program}}
    zrt.all_reduce_scalars @none over [dp]
  }
}

// -----

// bucket_table_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  // expected-error@+1 {{refers to @b0, which is no zero.bucket of this module}}
  zrt.bucket_table @b0 into @g store @k add @k parameters @g
}

// -----

// bucket_table_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.kernel @k [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  zrt.buffer @g : !zero.value<16xf32> role gradient in device
  zrt.buffer @p : !zero.value<8xf32> role parameter in device
  // expected-error@+1 {{buffer @g has other rows than bucket @b0}}
  zrt.bucket_table @b0 into @g store @k add @k parameters @p
}

// -----

// bucket_table_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.kernel @k [read bf16, write f32] scalars 0 {
  ^body(%g: bf16):
    %x = arith.extf %g : bf16 to f32
    zrt.yield %x : f32
  }
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @p : !zero.value<8xf32> role parameter in device
  // expected-error@+1 {{kernel @k must take ('f32', 'f32') and no scalars}}
  zrt.bucket_table @b0 into @g store @k add @k parameters @p
}

// -----

// count_arrivals_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @one [0.0]
  zrt.handler @h {
    // expected-error@+1 {{needs two scalar slots, @one has 1}}
    zrt.count_arrivals to @one
  }
}

// -----

// count_delivered_c1: a parameter without a bucket
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @two [0.0, 0.0]
  zrt.handler @h {
    // expected-error@+1 {{@w is no parameter that is a member of a zero.bucket}}
    zrt.count_delivered @w to @two[1]
  }
}

// -----

// count_delivered_c1: no parameter
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @two [0.0, 0.0]
  zrt.handler @h {
    // expected-error@+1 {{@b is no parameter that is a member of a zero.bucket}}
    zrt.count_delivered @b to @two[1]
  }
}

// -----

// count_delivered_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @two [0.0, 0.0]
  zrt.handler @h {
    // expected-error@+1 {{index 2 is out of range, @two has 2 scalar slots}}
    zrt.count_delivered @w to @two[2]
  }
}

// -----

// count_delivered_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @two [0.0, 0.0]
  zrt.handler @h {
    // expected-error@+1 {{index -1 is out of range, @two has 2 scalar slots}}
    zrt.count_delivered @w to @two[-1]
  }
}

// -----

// count_delivered_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{refers to @two, which is no zrt.slots of this program}}
    zrt.count_delivered @w to @two[0]
  }
}

// -----

// launch_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.segments @all ends [8] rows [] scalars []
  zrt.handler @h {
    // expected-error@+1 {{refers to @k, which is no zrt.kernel of this program}}
    zrt.launch @k [] over @all
  }
}

// -----

// reduce_scatter_add_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{needs a full source and a target sharded over ["dp"] with the same rows}}
    zrt.reduce_scatter_add @a to @a over [dp]
  }
}

// -----

// release_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @a : !zero.value<8xf32> role gradient in device
  zrt.handler @h {
    // expected-error@+1 {{buffer @a is not on demand}}
    zrt.release @a
  }
}

// -----

// set_role_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{refers to @none, which is no zrt.buffer of this program}}
    zrt.set_role @none as accumulator
  }
}

// -----

// program_c1
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{has two results "norm"}}
zrt.program @p on @m inputs [] results [norm, norm] [@x, @x] {
  zrt.slots @x [0.0]
}

// -----

// run_scalars_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{refers to @none, which is no zrt.scalars of this program}}
    zrt.run_scalars @none
  }
}

// -----

// scalars_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.slots @x [0.0]
  zrt.scalars @narrow {
    %x = zrt.load_slot @x[0]
    // expected-error@+1 {{makes 'f16' in a scalar program, which computes in f64}}
    %short = arith.truncf %x : f64 to f16
    %y = arith.extf %short : f16 to f64
    zrt.store_slot %y, @x[0]
    zrt.yield
  }
}

// -----

// commit_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.handler @h {
    // expected-error@+1 {{refers to @none, which is no zrt.slots of this program}}
    zrt.commit @none
  }
}

// -----

// bucket_table_c6
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32, sharded = [dp]> role gradient in device
  zrt.buffer @w : !zero.value<8xf32> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  // expected-error@+1 {{gradients arrive whole, and buffer @g is sharded}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @w
}

// -----

// bucket_table_c6
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @w : !zero.value<8xf32, sharded = [dp]> role parameter in device
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  // expected-error@+1 {{parameters are read whole, and buffer @w is sharded}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @w
}

// -----

// bucket_table_c7
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  zrt.buffer @all : !zero.value<8xf32> role parameter in device
  zrt.buffer @w : !zero.value<8xf32> role parameter in device shares @all
  zrt.kernel @store [read f32, write f32] scalars 0 {
  ^body(%g: f32):
    zrt.yield %g : f32
  }
  // expected-error@+1 {{buffer @w lives across steps and must not share memory}}
  zrt.bucket_table @b0 into @g store @store add @store parameters @w
}

// -----

// buffer_c4
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-note@+1 {{the memory is that of this one}}
  zrt.buffer @g : !zero.value<8xf32> role gradient in device
  // expected-error@+1 {{shares memory with a buffer of another role}}
  zrt.buffer @w : !zero.value<8xf32> role parameter in device shares @g
}

// -----

// scalars_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{region should have no arguments}}
  zrt.scalars @s {
  ^bb0(%x: f64):
    zrt.yield
  }
}

// -----

// store_slot_c1
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  zrt.scalars @s {
    %x = arith.constant 0.0 : f64
    // expected-error@+1 {{refers to @none, which is no zrt.slots of this program}}
    zrt.store_slot %x, @none[0]
    zrt.yield
  }
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a] results [] [] {
  zrt.slots @a [0.0]
  // expected-error@+1 {{with 'over', 'name', 'hyper', 'positive' or tokens must be an input of one scalar slot}}
  zrt.slots @b [0.0] over [dp]
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a] results [] [] {
  // expected-error@+1 {{with 'over', 'name', 'hyper', 'positive' or tokens must be an input of one scalar slot}}
  zrt.slots @a [0.0, 0.0] is "tokens"
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a] results [] [] {
  zrt.slots @a [0.0] hyper "lr"
  // expected-error@+1 {{with 'over', 'name', 'hyper', 'positive' or tokens must be an input of one scalar slot}}
  zrt.slots @b [0.0] hyper "lr"
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a] results [] [] {
  zrt.slots @a [0.0] name "lr"
  // expected-error@+1 {{with 'over', 'name', 'hyper', 'positive' or tokens must be an input of one scalar slot}}
  zrt.slots @b [0.0] name "wd"
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a, @b] results [] [] {
  zrt.slots @a [0.0] name "lr"
  // expected-error@+1 {{is the second input 'lr'}}
  zrt.slots @b [0.0] name "lr" hyper "lr"
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a] results [] [] {
  zrt.slots @a [0.0] positive
  // expected-error@+1 {{with 'over', 'name', 'hyper', 'positive' or tokens must be an input of one scalar slot}}
  zrt.slots @b [0.0] positive
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a] results [] [] {
  // expected-error@+1 {{names "tp", which is no axis of mesh @m}}
  zrt.slots @a [0.0] over [tp] is "tokens"
}

// -----

// slots_c2
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [@a, @b] results [] [] {
  // expected-note@+1 {{the first one is here}}
  zrt.slots @a [0.0] is "tokens"
  // expected-error@+1 {{is a second number of tokens}}
  zrt.slots @b [0.0] over [dp] is "tokens"
}

// -----

// slots_c3
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{is 'loss_scale', which is neither tokens nor the loss_scale of a program that has one}}
  zrt.slots @a [4.0] is "loss_scale"
}

// -----

// slots_c3
zero.mesh @m <["dp" = 2]>
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
zrt.program @p on @m loss_scale @scale inputs [] results [] [] {
  // expected-error@+1 {{is a loss scale, and no zrt.scalar_state: it would begin anew when a checkpoint is loaded}}
  zrt.slots @a [4.0] is "loss_scale"
}

// -----

// slots_c3
zero.mesh @m <["dp" = 2]>
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
zrt.program @p on @m loss_scale @scale inputs [] results [] [] {
  // expected-note@+1 {{the first one is here}}
  zrt.slots @a [4.0] is "loss_scale"
  zrt.scalar_state "scale.scale" in @a[0]
  // expected-error@+1 {{is a second loss scale}}
  zrt.slots @b [4.0] is "loss_scale"
  zrt.scalar_state "scale.other" in @b[0]
}

// -----

// program_c5
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{loss scale @scale is not a zero.loss_scale of this module}}
zrt.program @p on @m loss_scale @scale inputs [] results [] [] {
}

// -----

// program_c5
zero.mesh @m <["dp" = 2]>
zero.loss_scale @scale counters [scale = 4.0] {
^update(%overflow: i1, %scale: f64):
  zero.yield %scale : f64
}
// expected-error@+1 {{has loss scale @scale, and no slots with its number}}
zrt.program @p on @m loss_scale @scale inputs [] results [] [] {
}
