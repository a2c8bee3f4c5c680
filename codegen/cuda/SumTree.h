//===- SumTree.h - Sums of partial sums, in the same launch -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Partial sums are summed in groups of 4096, the sums of groups likewise, and
// so on until one sum is left. The warp that stores the last member of a group
// sums that group, while other warps still work on the next group. This warp
// differs from run to run; the order of additions does not.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_SUMTREE_H
#define ZERO_CODEGEN_CUDA_SUMTREE_H

#include "codegen/cuda/WarpBuilder.h"

namespace zero {

class SumTree : WarpBuilder {
public:
  /// The parameters of a kernel that sums; see EmitKernel.h.
  struct Memory {
    mlir::Value partials;
    mlir::Value arrivals;
    mlir::Value sum;
  };

  /// Emits code at the insertion point of |at|.
  SumTree(mlir::OpBuilder &at, mlir::Location loc, const Memory &memory)
      : WarpBuilder(at.getContext(), loc), memory(memory) {
    builder.setInsertionPoint(at.getInsertionBlock(), at.getInsertionPoint());
  }

  /// Emits the code of all threads of a warp after its piece, number |member|
  /// of |count|. A warp without a piece has a greater number. |lane| is the
  /// number of a thread in its warp.
  void emit(mlir::Value member, mlir::Value count, mlir::Value lane);

private:
  /// The position of a warp: it has one |member| of the |count| of a level.
  struct Level {
    mlir::Value partials;
    mlir::Value arrivals;
    mlir::Value count;
    mlir::Value member;
    mlir::Value goesOn;
  };
  static llvm::SmallVector<mlir::Value> list(const Level &level);
  static Level read(mlir::ValueRange values);

  Level emitLevel(const Level &level);
  mlir::Value emitArrival(mlir::Value arrivals);
  mlir::Value emitSum(mlir::Value partials, mlir::Value begin, mlir::Value end);
  mlir::Value address(mlir::Type type, mlir::Value base, mlir::Value index);
  void fence();

  Memory memory;
  mlir::Value lane;
};

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_SUMTREE_H
