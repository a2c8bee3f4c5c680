//===- Loops.h - Building the loops of kernels ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_KERNELS_LOOPS_H
#define ZERO_CODEGEN_KERNELS_LOOPS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace zero {

// The order of a sum is the same on all targets: element i is added to lane i
// mod 32, for any width of vectors, and blocks begin at multiples of 4096.
// Lanes start at +0.0. Therefore no lane and no sum is -0.0, and a lane without
// elements adds nothing.
constexpr int64_t kSumLanes = 32;
constexpr int64_t kSumBlock = 4096;

/// Builds ops at one location.
class LoopBuilder {
public:
  LoopBuilder(mlir::MLIRContext *context, mlir::Location loc)
      : builder(context), loc(loc) {}

protected:
  using LoopBody = llvm::function_ref<mlir::SmallVector<mlir::Value>(
      mlir::Value index, mlir::ValueRange carried)>;
  using Code = llvm::function_ref<mlir::SmallVector<mlir::Value>()>;

  template <typename T, typename... Args> mlir::Value create(Args &&...args) {
    return builder.create<T>(loc, std::forward<Args>(args)...);
  }
  mlir::Value i64(int64_t value) {
    return create<mlir::arith::ConstantOp>(builder.getI64IntegerAttr(value));
  }
  mlir::Value f64(double value) {
    return create<mlir::arith::ConstantOp>(builder.getF64FloatAttr(value));
  }

  mlir::SmallVector<mlir::Value> emitLoop(mlir::Value begin, mlir::Value end,
                                          int64_t step,
                                          mlir::ValueRange initial,
                                          LoopBody emitBody) {
    auto loop = builder.create<mlir::scf::ForOp>(
        loc, begin, end, i64(step), initial,
        [&](mlir::OpBuilder &nested, mlir::Location, mlir::Value index,
            mlir::ValueRange carried) {
          emitAt(nested, [&] { return emitBody(index, carried); });
        });
    return loop.getResults();
  }

  /// Both branches yield the same number of values.
  mlir::SmallVector<mlir::Value> emitIf(mlir::Value condition, Code emitThen,
                                        Code emitElse) {
    auto branch = builder.create<mlir::scf::IfOp>(
        loc, condition,
        [&](mlir::OpBuilder &nested, mlir::Location) {
          emitAt(nested, emitThen);
        },
        [&](mlir::OpBuilder &nested, mlir::Location) {
          emitAt(nested, emitElse);
        });
    return branch.getResults();
  }

  mlir::OpBuilder builder;
  mlir::Location loc;

private:
  /// Emits code at the insertion point of |nested|, and ends it with a yield.
  void emitAt(mlir::OpBuilder &nested, Code emit) {
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(nested.getInsertionBlock(),
                              nested.getInsertionPoint());
    builder.create<mlir::scf::YieldOp>(loc, emit());
  }
};

} // namespace zero

#endif // ZERO_CODEGEN_KERNELS_LOOPS_H
