// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of meshes, parameters, groups, buckets and optimizers.

// mesh_c1
// expected-error@+1 {{axis "dp" must have a size of at least 1 and at most 1048576, got 0}}
zero.mesh @m <["dp" = 0]>

// -----

// mesh_c1
// expected-error@+1 {{has more than 1048576 ranks}}
zero.mesh @m <["a" = 1048576, "b" = 1048576, "c" = 1048576, "d" = 1048576]>

// -----

// mesh_c1
// expected-error@+1 {{has 33 axes, expected at most 32}}
zero.mesh @m <["a0" = 1, "a1" = 1, "a2" = 1, "a3" = 1, "a4" = 1, "a5" = 1, "a6" = 1, "a7" = 1, "a8" = 1, "a9" = 1, "a10" = 1, "a11" = 1, "a12" = 1, "a13" = 1, "a14" = 1, "a15" = 1, "a16" = 1, "a17" = 1, "a18" = 1, "a19" = 1, "a20" = 1, "a21" = 1, "a22" = 1, "a23" = 1, "a24" = 1, "a25" = 1, "a26" = 1, "a27" = 1, "a28" = 1, "a29" = 1, "a30" = 1, "a31" = 1, "a32" = 1]>

// -----

// mesh_c2
// expected-error@+1 {{name "dp" is already taken}}
zero.mesh @m <["dp" = 2, "dp" = 2]>

// -----

// mesh_c2
// expected-error@+1 {{name "micro" is already taken}}
zero.mesh @m <["micro" = 2]>

// -----

// mesh_c3
// expected-error@+1 {{flattened axis "dp" must list axes of this mesh once each, got "tp"}}
zero.mesh @m <["edp" = 2]> flattened ["dp" = ["edp", "tp"]]

// -----

// mesh_c3
// expected-error@+1 {{flattened axis "dp" must list axes in the order of the mesh, got ["ep", "edp"]}}
zero.mesh @m <["edp" = 2, "ep" = 2]> flattened ["dp" = ["ep", "edp"]]

// -----

// parameter_c1
// expected-error@+1 {{element type must be f16, bf16, f32 or f64, got 'i8'}}
zero.parameter @w : 4xi8

// -----

// parameter_c2
// expected-error@+1 {{uses must be at least 1, or any, got 0}}
zero.parameter @w : 4xf32 uses 0

// -----

// parameter_c2
// expected-error@+1 {{uses must be at least 1 and at most 1024, or any, got 1025}}
zero.parameter @w : 4xf32 uses 1025

// -----

// parameter_c3
// expected-error@+1 {{is frozen and has uses, which says how gradients arrive: none does}}
zero.parameter @w : 4xf32 frozen uses any

// -----

// group_c1
// expected-error@+1 {{member @v is not a zero.parameter of this module}}
zero.group @g [@v]

// -----

// group_c1
zero.parameter @w : 4xf32
// expected-error@+1 {{member @w is listed twice}}
zero.group @g [@w, @w]

// -----

// bucket_c2
zero.parameter @v : 4xf32
zero.parameter @w : 4xf32
// expected-error@+1 {{member @w must begin at 32, where the one before ends, got 40}}
zero.bucket @b : 96xf32 arrives f32 [@v, @w] offsets [0, 40] extents [32, 56]

// -----

// bucket_c2
zero.parameter @w : 4xf32
// expected-error@+1 {{members fill 32 of 64 elements}}
zero.bucket @b : 64xf32 arrives f32 [@w] offsets [0] extents [32]

// -----

// bucket_c3
zero.parameter @w : 40xf32
// expected-error@+1 {{member @w has 40 elements and an interval of 32}}
zero.bucket @b : 32xf32 arrives f32 [@w] offsets [0] extents [32]

// -----

// bucket_c4
zero.parameter @v : 4xf32
zero.parameter @w : 4xbf16
// expected-error@+1 {{member @w is stored in 'bf16' and the ones before in 'f32'}}
zero.bucket @b : 64xf32 arrives f32 [@v, @w] offsets [0, 32] extents [32, 32]

// -----

// optimizer_c1
// expected-error@+1 {{prepare must take 2 hyperparameters and 0 counters, got 1 argument}}
zero.optimizer @sgd hyper [lr, wd] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}

// -----

// optimizer_c2
// expected-error@+1 {{update must take gradient, master, 0 states and 1 scalar, got 2 arguments}}
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32):
  zero.yield %p : f32
}

// -----

// optimizer_c3
// expected-error@+1 {{update must yield the master and 1 state in their types, got ('f32')}}
zero.optimizer @momentum hyper [lr] state [m] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %m: f32, %step: f32):
  zero.yield %p : f32
}

// -----

// optimizer_c4
// expected-note@+1 {{in the body of @sgd}}
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  // expected-error@+1 {{is not allowed in an optimizer, whose bodies hold arith and math ops only}}
  %x = builtin.unrealized_conversion_cast %g : f32 to f32
  zero.yield %p : f32
}

// -----

// optimizer_c6
// expected-error@+1 {{state must not be called "master"}}
zero.optimizer @slow hyper [lr] state [master] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %m: f32, %step: f32):
  zero.yield %p, %m : f32, f32
}

// -----

// optimizer_c5
// expected-error@+1 {{has an empty name; callers and checkpoints find values by their names}}
zero.optimizer @sgd hyper [lr] counters ["" = 1.0] {
^prepare(%lr: f64, %count: f64):
  zero.yield %count, %lr : f64, f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}

// -----

// optimizer_c5
// expected-error@+1 {{name "lr" is used twice}}
zero.optimizer @sgd hyper [lr] state [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %m: f32, %step: f32):
  zero.yield %p, %m : f32, f32
}

// -----

// Counters start somewhere.
// expected-error@+1 {{counter 'b1t' needs an initial value}}
zero.optimizer @adam hyper [lr] counters [b1t] {
}

// -----

// optimizer_c7
// expected-note@+1 {{in the body of @sgd}}
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  // expected-error@+1 {{makes 'f32' in prepare, which computes in f64}}
  %short = arith.truncf %lr : f64 to f32
  %step = arith.extf %short : f32 to f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
