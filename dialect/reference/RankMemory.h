//===- RankMemory.h - What one simulated rank holds -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_REFERENCE_RANKMEMORY_H
#define ZERO_DIALECT_REFERENCE_RANKMEMORY_H

#include "dialect/reference/ScalarBody.h"
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/ADT/StringMap.h"

namespace zero {

/// Buffers and slots of one rank. Numbers are kept as f64; what is stored has
/// been rounded to the buffer's type.
class RankMemory {
public:
  RankMemory(zrt::ProgramOp program, int64_t rank, int64_t ranks);

  std::vector<double> &getBuffer(mlir::FlatSymbolRefAttr symbol) {
    return buffers[symbol];
  }
  std::vector<double> &getSlots(mlir::FlatSymbolRefAttr symbol) {
    return slots[symbol];
  }

  /// Runs |kernel| over |op|'s segments.
  void launch(zrt::LaunchOp op, zrt::KernelOp kernel, zrt::SegmentsOp segments,
              const ScalarBody &body);
  /// Runs a store or add kernel over |count| elements from |offset| on.
  void pack(zrt::KernelOp kernel, const ScalarBody &body,
            llvm::ArrayRef<double> gradient, mlir::FlatSymbolRefAttr buffer,
            int64_t offset);
  void runScalars(const ScalarBody &body);

  int64_t getRank() const { return rank; }
  /// This rank's slice of |elements|.
  std::pair<int64_t, int64_t> getSlice(int64_t elements) const {
    return {rank * elements / ranks, (rank + 1) * elements / ranks};
  }

private:
  int64_t rank;
  int64_t ranks;
  llvm::DenseMap<mlir::Attribute, std::vector<double>> buffers;
  llvm::DenseMap<mlir::Attribute, std::vector<double>> slots;
};

} // namespace zero

#endif // ZERO_DIALECT_REFERENCE_RANKMEMORY_H
