//===- Ranks.h - Who sums with whom -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_RANKS_H
#define ZERO_DIALECT_INTERPRET_RANKS_H

#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// The ranks of a mesh, numbered row-major over its axes.
class Ranks {
public:
  Ranks() = default;
  explicit Ranks(MeshOp mesh);

  int64_t size() const { return numRanks; }
  int64_t getAxisSize(llvm::StringRef axis) const;

  /// The ranks that differ from one another over |axes| only, in order; one
  /// group for each combination of coordinates over the other axes.
  std::vector<std::vector<int64_t>>
  getGroups(llvm::ArrayRef<mlir::StringAttr> axes) const;

private:
  struct Axis {
    mlir::StringAttr name;
    int64_t size;
  };
  std::vector<Axis> axes;
  int64_t numRanks = 1;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_RANKS_H
