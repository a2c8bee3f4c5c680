//===- StepLowering.h - Lowers one step to a program ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_STEPLOWERING_H
#define ZERO_PASSES_LOWER_STEPLOWERING_H

#include "passes/lower/Protocol.h"
#include "passes/lower/ScalarLowering.h"

namespace zero {

/// Lowers one step. What runs at apply is the body of the step behind the loop
/// over backward passes, in its order, but for scalars, all of which come
/// before the first update: a GPU runs them in one launch. The rest is the
/// protocol's.
class StepLowering {
public:
  StepLowering(StepOp step, mlir::SymbolTableCollection &symbols)
      : step(step), symbols(symbols),
        mesh(symbols.lookupNearestSymbolFrom<MeshOp>(step,
                                                     step.getMeshAttr())) {}

  mlir::LogicalResult run();

private:
  mlir::LogicalResult readMicroBatches(MicroBatchesOp op);
  mlir::LogicalResult readUpdates();
  /// What the first optimizer that a scalar goes to calls it.
  llvm::DenseMap<mlir::Value, mlir::StringAttr> readHyperNames();
  void declareBuckets();
  /// Where what is made from here on comes from.
  void setLoc(mlir::Location loc) {
    program->setLoc(loc);
    finish->setLoc(loc);
  }
  mlir::LogicalResult lowerBody();
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerAllReduce(AllReduceOp op);
  void lowerGradientSum(AllReduceOp op, mlir::FlatSymbolRefAttr buffer);
  mlir::LogicalResult lowerSumSquares(SumSquaresOp op);
  void lowerCountReplicatedOnce(CountReplicatedOnceOp op);
  void lowerStack(StackOp op);
  void lowerPrepare(PrepareOp op);
  mlir::LogicalResult lowerUpdate(UpdateBucketOp op);
  mlir::LogicalResult lowerTransfer(TransferOp op);
  void lowerReturn(ReturnOp op);
  /// The loss scale or schedule |symbol|, whose counters get slots.
  CounterRule declareCounters(mlir::FlatSymbolRefAttr symbol);
  /// The slots that a launch for |op| takes row |index| of its scalars from,
  /// and before them its outcome and factor; stores them if they are new.
  mlir::FlatSymbolRefAttr getRow(UpdateBucketOp op, int64_t index);

  /// The axes over which the rows of |type| are divided; null if they are not.
  mlir::ArrayAttr getOwn(ValueType type) {
    llvm::SmallVector<mlir::StringAttr> axes =
        type.getAxesOfDim(type.getShape().size() - 1);
    if (axes.empty())
      return nullptr;
    return mlir::ArrayAttr::get(
        step.getContext(),
        llvm::SmallVector<mlir::Attribute>(axes.begin(), axes.end()));
  }
  BucketBuffers &bucketOf(mlir::FlatSymbolRefAttr symbol) {
    return buckets[symbol.getAttr()];
  }

  StepOp step;
  mlir::SymbolTableCollection &symbols;
  MeshOp mesh;
  std::optional<ProgramBuilder> program;
  std::optional<HandlerBuilder> finish;
  std::optional<ScalarLowering> scalars;
  BucketMap buckets;
  /// The bucket whose gradient a value is, and the buffer that holds it.
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> bucketOfValue;
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> bufferOfValue;
  /// Gradients that are a buffer times a scalar.
  llvm::DenseMap<mlir::Value, ScaleOp> scaled;
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> vectors;
  /// Scalars that count once: of what, and over which axes.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::ArrayAttr>>
      countedOnce;
  /// The counters of loss scales and schedules.
  llvm::DenseMap<mlir::StringAttr, Slot> countersOf;
  /// Rows of scalars by what they hold.
  llvm::SmallVector<
      std::pair<llvm::SmallVector<mlir::Value>, mlir::FlatSymbolRefAttr>>
      rows;
  mlir::FlatSymbolRefAttr arrivals;
  mlir::FlatSymbolRefAttr outcome;
};

} // namespace zero

#endif // ZERO_PASSES_LOWER_STEPLOWERING_H
