//===- Ranks.h - The ranks of a mesh and their groups -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_RANKS_H
#define ZERO_DIALECT_INTERPRET_RANKS_H

#include "dialect/interpret/Array.h"
#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// The ranks of a mesh, numbered row-major over its axes.
class Ranks {
public:
  Ranks() = default;
  explicit Ranks(MeshOp mesh);

  int64_t size() const { return numRanks; }
  int64_t getAxisSize(llvm::StringRef axis) const;

  /// The process groups over |axes|: ranks of a group differ over |axes| only.
  /// There is one group for each combination of coordinates over the other
  /// axes.
  std::vector<std::vector<int64_t>>
  getGroups(llvm::ArrayRef<mlir::StringAttr> axes) const;

  /// The same, with only the ranks that hold a part of a value of |type|.
  std::vector<std::vector<int64_t>>
  getGroups(llvm::ArrayRef<mlir::StringAttr> axes, ValueType type) const;

  /// Whether |rank| is on a pipeline stage that a value of |type| is on.
  bool isOn(ValueType type, int64_t rank) const;

  /// The same for each rank.
  std::vector<bool> getHolders(ValueType type) const;

  /// The coordinate of |rank| over |axis|; 0 if there is no such axis.
  int64_t getCoordinate(int64_t rank, llvm::StringRef axis) const;

  /// The slice of each rank, of |elements| that are divided over |axes|.
  std::vector<Range> getSlices(int64_t elements,
                               llvm::ArrayRef<mlir::StringAttr> axes) const;

  /// The elements of a value of |type| that |rank| holds, as positions in the
  /// whole value, in the order in which the rank holds them. Both row-major.
  std::vector<int64_t> getHeld(ValueType type, int64_t rank) const;

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
