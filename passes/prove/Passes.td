//===- Passes.td - Does a step do what it declares? --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_TD
#define ZERO_PASSES_PROVE_TD

include "mlir/Pass/PassBase.td"

def ProvePass : Pass<"zero-prove", "::mlir::ModuleOp"> {
  let summary = "Proves that every gradient reaches its update exactly once";
  let description = [{
    The pass computes, over symbols, the new value of each element, counter and result of the
    step. It reads a step at any phase and proves it for every number of backward passes. It
    reports each difference from the declaration, for example:

    - a gradient that is lost, counted twice, or has another normalization;
    - a norm over other elements than those that are clipped;
    - an outcome on which ranks may disagree;
    - a read of a value that was never written.

    A lowered or scheduled step declares nothing. Such a step is consistent by itself,
    and not compared with a step as written; `zero-prove --against` compares it.

    *Requires* one step in the module. *Guarantees* the obligations that
    passes/prove/README.md explains; changes nothing.
  }];
}

#endif // ZERO_PASSES_PROVE_TD
