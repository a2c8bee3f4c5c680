// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics --zero-expand-flattened
//
// Flattened axes that name an axis twice.

// expected-error@+1 {{a value names axis 'ep' twice, by a flattened axis of the mesh, got '!zero.value<8x8xf32, sharded = [ep, model : 1]>'}}
zero.mesh @m <["ep" = 2, "tp" = 2]> flattened ["model" = ["ep", "tp"]]
zero.parameter @w : 8x8xf32, sharded = [ep, model : 1]

// -----

// expected-note@+1 {{the other mesh is here}}
zero.mesh @m <["ep" = 2]> flattened ["dp" = ["ep"]]
// expected-error@+1 {{a module has the flattened axes of one mesh}}
zero.mesh @n <["tp" = 2]> flattened ["dp" = ["tp"]]

// -----

// expected-note@+1 {{axes are declared here}}
zero.mesh @m <["ep" = 2, "tp" = 2]> flattened ["model" = ["ep", "tp"]]
zero.parameter @w : 8xf32, on = [model : 1]
zero.step @s on @m normalize() () {
  %g = zero.micro_batches in f32 {
    // expected-error@+1 {{gradient of @w is on coordinate 1 of "model", which is no axis of mesh @m}}
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [micro], on = [model : 1]>
    zero.yield %d : !zero.value<8xf32, partial = [micro], on = [model : 1]>
  }
  zero.return []
}

// -----

// expected-note@+1 {{the other mesh is here}}
zero.mesh @m <["edp" = 2]> flattened ["dp" = ["edp"]]
// expected-error@+1 {{has an axis with the name of a flattened axis of another mesh}}
zero.mesh @n <["edp" = 2, "dp" = 4]>
