//===- Slots.h - The writers of scalar slots --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_SLOTS_H
#define ZERO_PASSES_PROVE_SLOTS_H

#include "dialect/zrt/ZrtDialect.h"

namespace zero::prove {

/// The ops that write each scalar slot: calls, stores of scalar programs, the
/// zrt.scalar_state of a slot that a checkpoint restores, and the zrt.program
/// of an input.
using SlotWriters = llvm::DenseMap<std::pair<mlir::StringAttr, int64_t>,
                                   llvm::SmallVector<mlir::Operation *, 1>>;

/// |symbols| are those of |program|.
SlotWriters readSlotWriters(zrt::ProgramOp program,
                            const mlir::SymbolTable &symbols);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_SLOTS_H
