// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics
//
// Rules of buckets and of what updates them, each by its name.

// bucket_c1
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{has no members: no gradient would arrive in it}}
zero.bucket @b0 : 0xf32 arrives f32 [] offsets [] extents []

// -----

// bucket_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
// expected-note@+1 {{the other one is here}}
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
// expected-error@+1 {{member @w is in another bucket as well}}
zero.bucket @b1 : 8xf32 arrives f32 [@w] offsets [0] extents [8]

// -----

// bucket_c1
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{member @w is not a zero.parameter of this module}}
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]

// -----

// value_c9
// expected-error@+1 {{must have at most 1099511627776 elements and no negative dimension}}
zero.parameter @w : 1048576x1048576x2xf32

// -----

// micro_batches_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    // expected-error@+1 {{must not be nested}}
    %e = zero.micro_batches in f32 {
      zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
    }
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// backward_c5
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{bucket @b0 keeps 'f32', got '!zero.value<8xbf16, partial = [dp, micro]>'}}
    %d = zero.backward(@b0) prescaled() : !zero.value<8xbf16, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xbf16, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// assign_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  %a = zero.stack %v, %v : !zero.value<f64>, !zero.value<f64>
  // expected-error@+1 {{value must have the shape of bucket @b0 and its members' storage type, got '!zero.value<2xf64>'}}
  zero.assign @b0, %a : !zero.value<2xf64>
  zero.return []
}

// -----

// clip_coefficient_c1
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%n: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand must be replicated, got partial over 'dp'}}
  %c = zero.clip_coefficient %n max 1.0 : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// prepare_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  // expected-error@+1 {{parameter group @g is not a zero.group of this module}}
  %s = zero.prepare @g with @sgd(%v) when %v yields 1 : (!zero.value<f64>), !zero.value<f64>
  zero.return []
}

// -----

// prepare_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  // expected-error@+1 {{optimizer @none is not a zero.optimizer of this module}}
  %s = zero.prepare @all with @none(%v) when %v yields 1 : (!zero.value<f64>), !zero.value<f64>
  zero.return []
}

// -----

// prepare_c2
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  // expected-error@+1 {{optimizer @sgd takes 1 hyperparameter and yields 1 scalar, got 2 and 1}}
  %s = zero.prepare @all with @sgd(%v, %v) when %v yields 1 : (!zero.value<f64>, !zero.value<f64>), !zero.value<f64>
  zero.return []
}

// -----

// prepare_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  // expected-error@+1 {{operand must be replicated, got varying over}}
  %s = zero.prepare @all with @sgd(%x) when %v yields 1 : (!zero.value<f64, varying = [dp]>), !zero.value<f64>
  zero.return []
}

// -----

// update_bucket_c1
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{bucket @b9 is not a zero.bucket of this module}}
  %p = zero.update_bucket @b9 with @sgd(%r) when %v rows(%v) row_of [0] : f32, !zero.value<8xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.return []
}

// -----

// update_bucket_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{bucket @b0 has 1 member, got 2 rows}}
  %p = zero.update_bucket @b0 with @sgd(%r) when %v rows(%v) row_of [0, 0] : f32, !zero.value<8xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.return []
}

// -----

// update_bucket_c3
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{row 1 is out of range, got 1 row of 1 scalar}}
  %p = zero.update_bucket @b0 with @sgd(%r) when %v rows(%v) row_of [1] : f32, !zero.value<8xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.return []
}

// -----

// update_bucket_c4
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{operand must be replicated, got varying over}}
  %p = zero.update_bucket @b0 with @sgd(%r) when %x rows(%v) row_of [0] : f32, !zero.value<8xf32>, !zero.value<f64, varying = [dp]>, (!zero.value<f64>)
  zero.return []
}

// -----

// update_c5: a learning rate that differs by rank
zero.mesh @m <["dp" = 2]>
zero.parameter @w : f64
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f64, %p: f64, %step: f64):
  zero.yield %p : f64
}
zero.step @s on @m normalize() (%v: !zero.value<f64>, %x: !zero.value<f64, varying = [dp]>) {
  // expected-error@+1 {{operand must be replicated, got varying over 'dp'}}
  zero.update @all with @sgd(%v) hyper(lr = %x) : (!zero.value<f64>), (!zero.value<f64, varying = [dp]>)
  zero.return []
}

// -----

// value_c9: an empty dimension hides no product that is too large.
// expected-error@+1 {{must have at most 1099511627776 elements and no negative dimension}}
zero.parameter @w : 1099511627776x1099511627776x0xf32

// -----

// value_c9: of a bucket the same, which divides by its rows.
zero.parameter @w : 8xf32
// expected-error@+1 {{must have at most 1099511627776 elements and no negative dimension}}
zero.bucket @b0 : 4294967296x4294967296x8xf32, sharded = [ep, tp : 1] arrives f32 [@w] offsets [0] extents [8]

// -----

// bucket_c2: the end of an interval is no number that overflows.
zero.parameter @w : 8xf32
zero.parameter @u : 8xf32
// expected-error@+1 {{member @u has an interval of 9223372036854775807 elements from 8 on, in a row of 16}}
zero.bucket @b0 : 16xf32 arrives f32 [@w, @u] offsets [0, 8] extents [8, 9223372036854775807]

// -----

// prepare_c4
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  // expected-error@+1 {{yields 9223372036854775807 scalars, expected 0 to 4096}}
  zero.prepare @all with @sgd(%v) when %v yields 9223372036854775807 : (!zero.value<f64>), !zero.value<f64>
  zero.return []
}

// -----

// prepare_c4
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%v: !zero.value<f64>) {
  // expected-error@+1 {{yields -1 scalars, expected 0 to 4096}}
  zero.prepare @all with @sgd(%v) when %v yields -1 : (!zero.value<f64>), !zero.value<f64>
  zero.return []
}

// -----

// update_bucket_c5
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%v: !zero.value<f64>, %g: !zero.value<8xf32>) {
  // expected-error@+1 {{parameters must be f16, bf16, f32 or f64, got 'f128'}}
  %p = zero.update_bucket @b0 with @sgd (%g) when %v rows(%v) row_of [0] : f128, !zero.value<8xf32>, !zero.value<f64>, (!zero.value<f64>)
  zero.return []
}

// -----

// parameter_c3
// expected-error@+1 {{is frozen and optional, which says how gradients arrive: none does}}
zero.parameter @w : 8xf32 optional frozen

// -----

// parameter_c3
// expected-error@+1 {{is frozen and has uses, which says how gradients arrive: none does}}
zero.parameter @w : 8xf32 frozen uses 2

// -----

// parameter_c4
// expected-note@+1 {{leave it out of the step, or do not declare it 'frozen' here}}
zero.parameter @w : 8xf32 frozen
// expected-error@+1 {{names @w, which is frozen: no gradient of it arrives}}
zero.group @all [@w]

// -----

// parameter_c4
// expected-note@+1 {{leave it out of the step, or do not declare it 'frozen' here}}
zero.parameter @w : 8xf32 frozen
// expected-error@+1 {{names @w, which is frozen: no gradient of it arrives}}
zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]

// -----

// parameter_c4
zero.mesh @m <["dp" = 2]>
// expected-note@+1 {{leave it out of the step, or do not declare it 'frozen' here}}
zero.parameter @w : 8xf32 frozen
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{names @w, which is frozen: no gradient of it arrives}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  zero.return []
}

// -----

// bucket_c1: also of a bucket that stands in a program by mistake.
zero.mesh @m <["dp" = 2]>
zrt.program @p on @m inputs [] results [] [] {
  // expected-error@+1 {{member @w is not a zero.parameter of this module}}
  zero.bucket @b0 : 8xf32 arrives f32 [@w] offsets [0] extents [8]
}
