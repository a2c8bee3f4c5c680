//===- Prove.h - Proofs of steps and of their equality ----------*- C++ -*-===//
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

/// The summary of a proof.
struct ProofSummary {
  std::string step;
  int64_t ranks = 0;
  int64_t parameters = 0;
  int64_t elements = 0;
  /// Parameters whose gradient is replicated over some axes by a precondition,
  /// and these axes.
  std::vector<std::pair<std::string, std::string>> replicated;
  /// Parameters whose gradient is summed over some axes before it arrives, and
  /// these axes.
  std::vector<std::pair<std::string, std::string>> reduced;
  /// The loss scale that gradients arrive with; empty: none.
  std::string lossScale;
  /// Inputs of which each rank passes an addend of its own, and the axes over
  /// which addends differ.
  std::vector<std::pair<int64_t, std::string>> addends;
  /// Whether a step has one backward pass. Otherwise it has any number.
  bool oneBackward = false;
  /// Whether ranks may make different numbers of backward passes.
  bool takesUnequal = false;
  /// Whether all ranks wait for each other in each backward pass, and the axes
  /// over which ranks do.
  bool allWait = false;
  std::string waitsOver;
  /// Whether ranks wait for each other in a backward pass that is begun with
  /// the hint that it is the last.
  bool takesHints = false;
  bool hasStages = false; // some parameters are on some pipeline stages only
  bool hasUnits = false;  // parameters are gathered when the caller unshards
  /// The facts of state that a caller who writes state must keep.
  std::vector<std::string> assumed;
};

/// The preconditions of a proof on the caller of the step, in sentences.
std::vector<std::string> getPreconditions(const ProofSummary &summary);

/// A proved step, with which other steps are compared. It owns a copy, since
/// its module may be lowered in the meantime.
class ProvedStep {
public:
  /// Every violation is emitted as an error at its op.
  explicit ProvedStep(mlir::ModuleOp module);
  ~ProvedStep();

  /// Whether the step does what it declares.
  bool isProved() const;
  ProofSummary getSummary() const;

  /// Whether |module| has a step that does what it declares and equals this
  /// step. Emits an error for each difference.
  bool isSameAs(mlir::ModuleOp module);

  /// The two parts of isSameAs on a scheduled |module|, for a caller that has a
  /// processor for each: whether its calls wait for each other; and the rest.
  bool hasOrder(mlir::ModuleOp module);
  bool isSameButForOrder(mlir::ModuleOp module);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace zero

#endif // ZERO_PASSES_PROVE_PROVE_H
