//===- Passes.td - What ranks of one pipeline stage do -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_STAGE_TD
#define ZERO_PASSES_STAGE_TD

include "mlir/Pass/PassBase.td"

def SelectStagePass : Pass<"zrt-select-stage", "::mlir::ModuleOp"> {
  let summary = "Leaves of a program what the ranks of one pipeline stage run";
  let description = [{
    A program says what all ranks do, in one order: calls that work on what is
    `on = [pp : 1]` are those of that stage. This pass leaves out buffers, arrivals,
    state and calls of other stages. Code generation does so for each stage, so that
    a library has one program per stage; the pass shows them.

    Since the programs of all stages are parts of one order, no ranks can wait for
    each other in a circle.

    *Requires:* a scheduled module.

    *Guarantees:* what is left is on the given coordinates, and nothing of them is
    left out.
  }];
  let options = [
    Option<"stage", "stage", "std::string", /*default=*/"",
           "The coordinate over each axis that has stages, such as pp=1 (several "
           "are separated by ':')">
  ];
  let dependentDialects = ["::zrt::ZrtDialect"];
}

#endif // ZERO_PASSES_STAGE_TD
