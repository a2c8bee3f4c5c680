// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of tables of frozen parameters, each by its name.

// frozen_table_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device on_demand shares @ring
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{refers to @f1, which is no zero.frozen_bucket of this module}}
  zrt.frozen_table @f1 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16 [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device on_demand shares @ring
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{is of @f0, which is not sharded: the caller keeps its parameters}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device on_demand shares @ring
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{is a second table of @f0}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  // expected-note@+1 {{the other one is here}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<32xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device on_demand shares @ring
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{buffer @p has other rows than bucket @f0: '!zero.value<32xbf16, sharded = [dp]>'}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xf32> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xf32> role parameter in device on_demand shares @ring
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{buffer @whole holds 'f32', and the parameters are 'bf16'}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device on_demand
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device on_demand shares @ring
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{buffer @p lives across steps and must not be on demand}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device shares @ring
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{buffer @whole holds parameters while their unit is unsharded; it must be on demand, and on the device}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device on_demand
  zrt.handler @unshard {
  }
  zrt.handler @reshard {
  }
  // expected-error@+1 {{buffer @whole has an address of its own at each allocation}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
  zrt.unit_table @u unshard @unshard reshard @reshard
}

// -----

// frozen_table_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@w] offsets [0] extents [64] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<64xbf16> role parameter in device
  zrt.buffer @p : !zero.value<64xbf16, sharded = [dp]> role parameter in device
  zrt.buffer @whole : !zero.value<64xbf16> role parameter in device on_demand shares @ring
  // expected-error@+1 {{buffer @whole is of a bucket whose unit has no zrt.unit_table: nothing would gather it}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
}

// -----

// frozen_table_c2
zero.mesh @m <["dp" = 2, "node" = 2]>
zero.parameter @w : 8xbf16 frozen
zero.unit @u [@w]
zero.frozen_bucket @f0 : 128xbf16, sharded = [dp] [@w] offsets [0] extents [128] unit @u
zrt.program @p on @m inputs [] results [] [] {
  zrt.buffer @ring : !zero.value<128xbf16> role parameter in device
  zrt.buffer @p : !zero.value<128xbf16, sharded = [dp, node]> role parameter in device
  zrt.buffer @whole : !zero.value<128xbf16> role parameter in device on_demand shares @ring
  // expected-error@+1 {{buffer @p is '!zero.value<128xbf16, sharded = [dp, node]>', sharded over other axes than the bucket}}
  zrt.frozen_table @f0 parameters @p unsharded @whole
}
