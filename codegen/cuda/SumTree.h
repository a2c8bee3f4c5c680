//===- SumTree.h - Sums of partial sums, in the same launch -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Partial sums are summed in groups of 4096, the sums of groups likewise, and
// so on until one is left. The warp that comes with the last member of a group
// sums that group, while others are still at work on the next: which warp that
// is differs from run to run, the order of additions never does.
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

  /// Code goes to the insertion point of |at|.
  SumTree(mlir::OpBuilder &at, mlir::Location loc, const Memory &memory)
      : WarpBuilder(at.getContext(), loc), memory(memory) {
    builder.setInsertionPoint(at.getInsertionBlock(), at.getInsertionPoint());
  }

  /// What all threads of a warp do behind their pieces, of which there are
  /// |count| in all, and those of this warp begin with |first|, a multiple of
  /// |perWarp|, of which there are as many at most. |lane| is the number of a
  /// thread in its warp.
  void emit(mlir::Value first, int64_t perWarp, mlir::Value count,
            mlir::Value lane);

private:
  /// Where a warp stands: with |mine| of the |count| members of a level, from
  /// |first| on.
  struct Level {
    mlir::Value partials;
    mlir::Value arrivals;
    mlir::Value count;
    mlir::Value first;
    mlir::Value mine;
    mlir::Value goesOn;
  };
  static llvm::SmallVector<mlir::Value> list(const Level &level);
  static Level read(mlir::ValueRange values);

  Level emitLevel(const Level &level);
  mlir::Value emitArrival(mlir::Value arrivals, mlir::Value mine);
  mlir::Value emitSum(mlir::Value partials, mlir::Value begin, mlir::Value end);
  mlir::Value address(mlir::Type type, mlir::Value base, mlir::Value index);
  void fence();
  void meet() { builder.create<mlir::NVVM::SyncWarpOp>(loc, i32(-1)); }

  Memory memory;
  mlir::Value lane;
};

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_SUMTREE_H
