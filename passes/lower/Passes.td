//===- Passes.td - From values to buffers and handlers -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_TD
#define ZERO_PASSES_LOWER_TD

include "mlir/Pass/PassBase.td"

def LowerToZrtPass : Pass<"zero-lower-to-zrt", "::mlir::ModuleOp"> {
  let summary = "Lowers a sharded step to buffers, kernels and handlers";
  let description = [{
    Buckets become buffers: gradients, slices of their reduction, parameters,
    master weights and optimizer state. Element-wise work becomes kernels: the
    factor, the update, and the cast and store of parameters are one pass over
    memory. Scalars become slots and straight-line f64 programs: one for each
    all-reduce of scalars that it has to wait for, and one before the first update,
    since on a GPU each is a launch; one rank has no all-reduce. What runs when is the
    protocol: the first backward pass stores, later ones add (stage 2: are reduced
    and added), and the buffer that the first one wrote is given another role as the
    accumulator when a second one begins, so that one backward pass has none.

    *Requires:* the form that `zero-coalesce-scalars` leaves.

    *Guarantees:* the module has a `zrt.program` and no `zero.step`.
  }];
  let dependentDialects = ["::zero::ZeroDialect", "::zrt::ZrtDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // ZERO_PASSES_LOWER_TD
