//===- ProveEachPass.h - Which pass changed what a step does? ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_PROVEEACHPASS_H
#define ZERO_PASSES_PROVE_PROVEEACHPASS_H

#include "passes/prove/Prove.h"

#include "mlir/Pass/PassInstrumentation.h"

namespace zero {

/// Compares the step after each pass over a module with the step before the
/// first pass. Stops at the first pass that changes the step.
class ProveEachPass : public mlir::PassInstrumentation {
public:
  struct Result {
    unsigned passes = 0; // that did not change the step
    std::string broken;  // the pass that changed the step; empty if none did
  };

  /// Every pass must keep |reference|. If |reference| is null, the step before
  /// the first pass is the reference. If this step cannot be proved, nothing is
  /// compared. |result| outlives the pass manager.
  ProveEachPass(ProvedStep *reference, Result &result)
      : reference(reference), result(result) {}

  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  ProvedStep *reference;
  bool hasBegun = false;
  std::unique_ptr<ProvedStep> first;
  /// What was proved last. A pass that leaves it alone needs no proof.
  mlir::OwningOpRef<mlir::ModuleOp> proved;
  Result &result;
};

} // namespace zero

#endif // ZERO_PASSES_PROVE_PROVEEACHPASS_H
