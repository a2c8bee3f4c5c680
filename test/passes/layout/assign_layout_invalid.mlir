// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics --zero-assign-layout
// RUN: not zero-opt %zero_src/examples/quickstart.mlir --zero-lower="bucket-bytes=-5 until=lowered" 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: bucket-bytes must be at least 1, got -5

// A step without gradients.
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{has no gradients}}
zero.step @s on @m normalize() () {
  zero.return []
}

// -----

// Gradients of two parameters of one shape, swapped: types cannot see it.
zero.mesh @m <["dp" = 2]>
zero.parameter @v : 8xf32
zero.parameter @w : 8xf32
// expected-note@+1 {{parameter group is declared here}}
zero.group @g [@v, @w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@v, @w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>, !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d#0, %d#1 : !zero.value<8xf32, partial = [dp, micro]>, !zero.value<8xf32, partial = [dp, micro]>
  }
  %r:2 = zero.reduce %g#0, %g#1 : !zero.value<8xf32, partial = [dp]>, !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{updates @v with the gradient of @w}}
  zero.update @g with @sgd(%r#1, %r#0) hyper(lr = 0.1) : (!zero.value<8xf32>, !zero.value<8xf32>), ()
  zero.return []
}

// -----

// An update with the gradient before it is clipped.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  %n = zero.norm %r : !zero.value<8xf32>
  // expected-note@+1 {{zero.clip is here}}
  %c = zero.clip %r by %n max 1.0 : !zero.value<8xf32> by !zero.value<f64>
  // expected-error@+1 {{takes the gradient of @w as it was before zero.clip; take its result instead: a gradient goes through zero.micro_batches, zero.reduce, any number of zero.clip and one zero.update}}
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}

// -----

// Two reductions of one gradient.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  // expected-note@+1 {{zero.reduce is here}}
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{takes the gradient of @w as it was before zero.reduce; take its result instead}}
  %q = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  zero.update @g with @sgd(%q) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}

// -----

// An op on the gradient of one backward pass.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    // expected-error@+1 {{'zero.add' op is inside zero.micro_batches, which can have zero.backward only; move it behind the loop}}
    %e = zero.add %d, %d : !zero.value<8xf32, partial = [dp, micro]>, !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %e : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}

// -----

// An op on a gradient.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  // expected-error@+1 {{'zero.add' op takes a gradient, which only zero.micro_batches, zero.reduce, zero.norm, zero.clip and zero.update can}}
  %e = zero.add %g, %g : !zero.value<8xf32, partial = [dp]>, !zero.value<8xf32, partial = [dp]>
  %r = zero.reduce %e : !zero.value<8xf32, partial = [dp]>
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}

// -----

// A norm of a gradient that is not reduced, and is the same on all ranks.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() replicated [dp] : !zero.value<8xf32, partial = [micro]>
    zero.yield %d : !zero.value<8xf32, partial = [micro]>
  }
  // expected-error@+1 {{takes a value that is no result of zero.reduce or zero.clip; take the norm of the reduced gradients, or of the clipped ones}}
  %n = zero.norm %g : !zero.value<8xf32>
  %r = zero.reduce %g : !zero.value<8xf32>
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return [norm] %n : !zero.value<f64>
}

// -----

// A norm of clipped gradients where the norm before may be infinite.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() nonfinite apply () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  %n = zero.norm %r : !zero.value<8xf32>
  %c = zero.clip %r by %n max 1.0 : !zero.value<8xf32> by !zero.value<f64>
  // expected-error@+1 {{takes a clipped gradient in a step that is applied even if a norm is infinite; remove 'nonfinite apply', or take the norm of the gradients before zero.clip}}
  %n2 = zero.norm %c : !zero.value<8xf32>
  zero.update @g with @sgd(%c) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return [norm] %n2 : !zero.value<f64>
}

// -----

// A norm in which one gradient counts twice.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{counts the gradient of @w twice; list it once}}
  %n = zero.norm %r, %r : !zero.value<8xf32>, !zero.value<8xf32>
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return [norm] %n : !zero.value<f64>
}

// -----

// A second sum over the ranks.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{reduces the gradient of @w a second time; remove one zero.reduce}}
  %q = zero.reduce %r : !zero.value<8xf32>
  zero.update @g with @sgd(%q) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}

// -----

// An argument that differs from rank to rank and is no addend.
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{argument 0 must be replicated, or partial with or without a scale, got '!zero.value<f64, varying = [dp]>'}}
zero.step @s on @m normalize() (%loss: !zero.value<f64, varying = [dp]>) {
  zero.return []
}

// -----

// expected-note@+1 {{axes are declared here}}
zero.mesh @m <["dp" = 2]>
// expected-error@+1 {{argument 0 is partial over 'pp', which is no axis of mesh @m}}
zero.step @s on @m normalize() (%loss: !zero.value<f64, partial = [pp]>) {
  zero.return []
}

// -----

// A norm of a value that is not a gradient.
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 8xf32
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%loss: !zero.value<f64, partial = [dp]>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp]>
  %sum = zero.reduce %loss : !zero.value<f64, partial = [dp]>
  // expected-error@+1 {{takes a value that is not the gradient of a parameter; leave that value out of the norm}}
  %norm = zero.norm %sum : !zero.value<f64>
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  zero.return []
}

// -----

// expected-error@+1 {{has flattened axes; run zero-expand-flattened first}}
zero.mesh @m <["edp" = 2, "ep" = 2]> flattened ["dp" = ["edp", "ep"]]
zero.step @s on @m normalize() () {
  zero.return []
}
