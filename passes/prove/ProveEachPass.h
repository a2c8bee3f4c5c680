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

/// Compares the step after each pass over a module with the one before the
/// first. After the first pass that changed it, it compares no more.
class ProveEachPass : public mlir::PassInstrumentation {
public:
  struct Result {
    unsigned passes = 0; // after which it was the same step
    std::string broken;  // the pass that changed it; empty if none did
  };

  /// |reference| is what every pass must keep. Where it is null it is the step
  /// before the first pass, if that can be proved, and nothing is compared if
  /// it cannot. |result| outlives the pass manager.
  ProveEachPass(ProvedStep *reference, Result &result)
      : reference(reference), result(result) {}

  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  ProvedStep *reference;
  bool hasBegun = false;
  std::unique_ptr<ProvedStep> first;
  Result &result;
};

} // namespace zero

#endif // ZERO_PASSES_PROVE_PROVEEACHPASS_H
