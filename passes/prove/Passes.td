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
    Computes, over symbols, what each element, counter and result of the step
    becomes, at whatever phase the step is, for every number of backward passes, and
    reports each way in which that is not what the step declares: a gradient that is
    lost, counted twice or with another weight, a norm over other elements than the
    clipped ones, an outcome on which ranks may disagree, a value that nobody wrote.

    *Requires* one step in the module. *Guarantees* the obligations that
    passes/prove/README.md explains; changes nothing.
  }];
}

#endif // ZERO_PASSES_PROVE_TD
