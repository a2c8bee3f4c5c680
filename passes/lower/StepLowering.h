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

/// Lowers one step. The protocol runs the loop over backward passes. Apply runs
/// the rest of the step's body, in its order. Exception: all scalars come
/// before the first update, since a GPU computes them in one launch.
class StepLowering {
public:
  StepLowering(StepOp step, mlir::SymbolTableCollection &symbols)
      : step(step), symbols(symbols),
        mesh(symbols.lookupNearestSymbolFrom<MeshOp>(step, step.getMeshAttr())),
        arrive(step.getLoc()) {}

  mlir::LogicalResult run();

private:
  /// Whether a sum over |axes| is one of several ranks. The sum of one rank is
  /// the addend itself. An axis that the mesh does not have is an error of the
  /// program, and the call stays so that its verifier reports the axis.
  bool isOfSeveral(mlir::ArrayAttr axes);
  mlir::LogicalResult readMicroBatches(MicroBatchesOp op);
  mlir::LogicalResult readUpdates();
  /// Gives buckets that are summed `apart` the types for that. Their gradients
  /// are narrower than the sum, and nothing but a reduce-scatter reads the sum.
  mlir::LogicalResult readApart();
  /// The name of the hyperparameter that a scalar is, in the first optimizer or
  /// clip that takes it.
  llvm::DenseMap<mlir::Value, mlir::StringAttr> readHyperNames();
  void declareBuckets();
  /// The location of everything that is created from here on.
  void setLoc(mlir::Location loc) {
    program->setLoc(loc);
    calls->setLoc(loc);
  }
  /// Creates the handlers that run after all backward passes are closed.
  mlir::FailureOr<ApplyHandlers> lowerBody();
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerAllReduce(AllReduceOp op);
  void lowerGradientSum(AllReduceOp op, mlir::FlatSymbolRefAttr buffer);
  mlir::LogicalResult lowerSumSquares(SumSquaresOp op);
  void lowerCountReplicatedOnce(CountReplicatedOnceOp op);
  void lowerStack(StackOp op);
  void lowerDelivered(DeliveredCountOp op);
  void lowerPrepare(PrepareOp op);
  mlir::LogicalResult lowerUpdate(UpdateBucketOp op);
  mlir::LogicalResult lowerTransfer(TransferOp op);
  void lowerReturn(ReturnOp op);
  /// Creates slots for the counters of the loss scale or schedule |symbol|.
  CounterRule declareCounters(mlir::FlatSymbolRefAttr symbol);
  /// The slots of a launch for |op|: outcome, factor, and row |index| of its
  /// scalars. Stores the scalars if the slots are new.
  mlir::FlatSymbolRefAttr getRow(UpdateBucketOp op, int64_t index);

  /// The axes over which the rows of |type| are divided; null if there are
  /// none.
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
  /// The handler that gets the calls: first the one that measures, and then the
  /// one that updates.
  std::optional<HandlerBuilder> calls;
  std::optional<ScalarLowering> scalars;
  BucketMap buckets;
  /// The bucket whose gradient a value is, and the buffer that holds it.
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> bucketOfValue;
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> bufferOfValue;
  /// Gradients that are a buffer times a scalar.
  llvm::DenseMap<mlir::Value, ScaleOp> scaled;
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> vectors;
  /// Scalars that count once: the replicated scalar, and the axes.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::ArrayAttr>>
      countedOnce;
  /// The counters of loss scales and schedules.
  llvm::DenseMap<mlir::StringAttr, Slot> countersOf;
  /// Rows of scalars by their contents.
  llvm::SmallVector<
      std::pair<llvm::SmallVector<mlir::Value>, mlir::FlatSymbolRefAttr>>
      rows;
  mlir::ArrayAttr inputs;
  mlir::Location arrive; // of the loop over backward passes
  mlir::FlatSymbolRefAttr arrivals;
  mlir::FlatSymbolRefAttr outcome;
};

} // namespace zero

#endif // ZERO_PASSES_LOWER_STEPLOWERING_H
