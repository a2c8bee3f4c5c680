//===- Prove.h - Is this step what it declares, and the same? ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_PROVE_H
#define ZERO_PASSES_PROVE_PROVE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace zero {

/// What a proof was about.
struct ProofSummary {
  std::string step;
  int64_t ranks = 0;
  int64_t parameters = 0;
  int64_t elements = 0;
  /// Parameters whose gradient all ranks over some axes promise to deliver
  /// alike, and these axes.
  std::vector<std::pair<std::string, std::string>> replicated;
  /// The loss scale that gradients arrive with; empty: none.
  std::string lossScale;
  /// Inputs of which each rank passes an addend of its own, and the axes over
  /// which they differ.
  std::vector<std::pair<int64_t, std::string>> addends;
  /// Whether ranks may make different numbers of backward passes.
  bool takesUnequal = false;
  /// Whether all ranks wait for each other before apply, and the axes over
  /// which some do.
  bool allWait = false;
  std::string waitsOver;
  /// Whether some do in a backward pass that is begun as the last.
  bool takesHints = false;
};

/// What a proof takes from whoever calls the step, in sentences.
std::vector<std::string> getPreconditions(const ProofSummary &summary);

/// A step that was proved, and that others are compared with. Owns a copy: the
/// module that it was read from may be lowered meanwhile.
class ProvedStep {
public:
  /// Every violation is emitted as an error at its op.
  explicit ProvedStep(mlir::ModuleOp module);
  ~ProvedStep();

  /// Whether the step does what it declares.
  bool isProved() const;
  ProofSummary getSummary() const;

  /// Whether |module| has a step that does what it declares, and the same as
  /// this one. Emits an error for each difference.
  bool isSameAs(mlir::ModuleOp module);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace zero

#endif // ZERO_PASSES_PROVE_PROVE_H
