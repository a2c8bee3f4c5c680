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
    Reduced scalars that do not depend on each other (sums of squares, numbers of backward
    passes, missing gradients) are stacked into a vector, reduced once, and unstacked. The
    vector is reduced over the axes of all of them. A scalar that is replicated over one of
    these axes is counted once there. One all-reduce remains per level of dependency.

    *Requires:* the sharded phase.

    *Guarantees:* no two scalar all-reduces are independent. If there is only one, nothing
    changes.
  }];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_SCALAR_TD
