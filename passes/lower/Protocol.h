//===- Protocol.h - Handlers of backward passes -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_PROTOCOL_H
#define ZERO_PASSES_LOWER_PROTOCOL_H

#include "passes/lower/BucketBuffers.h"

namespace zero {

/// The handlers that follow when all backward passes are closed and all |sums|
/// of the buckets are taken.
struct ApplyHandlers {
  /// Computes what the step reports, its outcome, and all other scalars.
  mlir::FlatSymbolRefAttr measure;
  mlir::FlatSymbolRefAttr update;
  mlir::FlatSymbolRefAttr commit;
  /// Gives counters the values before |measure|; null if there are no counters.
  mlir::FlatSymbolRefAttr undo;

  llvm::SmallVector<mlir::FlatSymbolRefAttr> getAll() const {
    llvm::SmallVector<mlir::FlatSymbolRefAttr> all{measure, update, commit};
    if (undo)
      all.push_back(undo);
    return all;
  }
};

/// Creates the handlers of the backward passes and the automaton.
/// |oneBackward|: a step has one backward pass.
void buildProtocol(ProgramBuilder &program, BucketMap &buckets,
                   const ApplyHandlers &handlers, bool oneBackward);

} // namespace zero

#endif // ZERO_PASSES_LOWER_PROTOCOL_H
