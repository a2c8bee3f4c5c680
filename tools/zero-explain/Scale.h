//===- Scale.h - The same step on more and more ranks -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_EXPLAIN_SCALE_H
#define ZERO_TOOLS_ZERO_EXPLAIN_SCALE_H

#include "tools/zero-explain/Explain.h"
#include "tools/zero-explain/Machine.h"

#include "llvm/Support/raw_ostream.h"

namespace zero {

/// The step on a mesh of |ranks| ranks.
struct ScaledStep {
  int64_t ranks = 0;
  std::string reason; // why it cannot be lowered so; empty if it can
  Cost cost;
  /// With pipeline stages: of the stage that takes longest.
  Times times;

  llvm::json::Object toJson() const;
};

/// Lowers |module|, which is on a mesh, as |options| say for 8 to 16384 ranks:
/// |axis| has powers of 2 as sizes, and the other axes keep theirs. Fails if
/// the mesh has no such axis.
llvm::FailureOr<std::vector<ScaledStep>>
scale(mlir::ModuleOp module, const LowerOptions &options, llvm::StringRef axis,
      const Machine &machine, std::string &message);

void printScale(llvm::ArrayRef<ScaledStep> steps, llvm::StringRef axis,
                const Machine &machine, llvm::raw_ostream &os);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_EXPLAIN_SCALE_H
