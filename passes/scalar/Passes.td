//===- Passes.td - Scalars that travel together ------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_SCALAR_TD
#define ZERO_PASSES_SCALAR_TD

include "mlir/Pass/PassBase.td"

def CoalesceScalarsPass : Pass<"zero-coalesce-scalars", "::mlir::ModuleOp"> {
  let summary = "Stacks independent scalar all-reduces into one";
  let description = [{
    Scalars that are reduced and do not depend on each other (sums of squares,
    numbers of backward passes, missing gradients) are stacked into a vector, reduced
    once, and unstacked. It is reduced over the axes of all of them: what the ranks
    of an axis hold alike is counted once there. One all-reduce remains per level
    of dependency.

    *Requires:* the sharded phase.

    *Guarantees:* no two scalar all-reduces are independent. Does nothing where
    there is only one.
  }];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_SCALAR_TD
