//===- Passes.td - The program of one pipeline stage -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_STAGE_TD
#define ZERO_PASSES_STAGE_TD

include "mlir/Pass/PassBase.td"

def SelectStagePass : Pass<"zrt-select-stage", "::mlir::ModuleOp"> {
  let summary = "Keeps the part of a program that the ranks of one pipeline stage run";
  let description = [{
    A program lists the calls of all ranks, in one order. A call on a buffer with
    `on = [pp : 1]` runs on this stage only. The pass removes buffers, arrivals, state and
    calls of other stages. Code generation does the same for each stage, so a library has one
    program per stage. The pass shows these programs.

    The programs of all stages are parts of one order. So ranks cannot wait for each other in a
    circle.

    *Requires:* a scheduled module.

    *Guarantees:* every remaining op is on the given coordinates, and no op on these
    coordinates is removed.
  }];
  let options = [
    Option<"stage", "stage", "std::string", /*default=*/"",
           "The coordinate over each axis that has stages, such as pp=1 (several "
           "are separated by ':')">
  ];
  let dependentDialects = ["::zrt::ZrtDialect"];
}

#endif // ZERO_PASSES_STAGE_TD
