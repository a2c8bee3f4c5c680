//===- Passes.td - Is a step in the phase it claims? -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_CHECK_TD
#define ZERO_PASSES_CHECK_TD

include "mlir/Pass/PassBase.td"

def CheckPhasePass : Pass<"zero-check-phase", "::mlir::ModuleOp"> {
  let summary = "Reports every op that does not belong to a phase";
  let description = [{
    - Logical: no bucket, no collective, no owner.
    - Sharded: every sum over the mesh is a collective; no value of a single parameter; no
      transfer.
    - Placed: as sharded, with transfers.
    - Scheduled: no step.

    The pass reports all violations, not only the first one.
  }];
  let options = [
    Option<"phase", "phase", "std::string", /*default=*/"\"logical\"",
           "logical, sharded, placed, lowered or scheduled.">
  ];
}

#endif // ZERO_PASSES_CHECK_TD
