//===- ShardedStep.h - The sharded phase ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_SHARDEDSTEP_H
#define ZERO_DIALECT_INTERPRET_SHARDEDSTEP_H

#include "dialect/interpret/StepInterpreter.h"

namespace zero {

/// A bucket on all ranks. Each rank has the row of the parameters that it
/// holds, and the part of the master weights and the state that it owns.
struct BucketState {
  BucketOp op;
  Optimizer *optimizer = nullptr;
  std::vector<Range> owned;
  PerRank parameters;
  std::vector<bool> isOn; // by rank
  PerRank master;         // empty if the parameters are the master weights
  std::vector<PerRank> states;
};

class ShardedStep : public StepInterpreter {
public:
  using StepInterpreter::StepInterpreter;

  mlir::LogicalResult bindParameter(llvm::StringRef name,
                                    llvm::ArrayRef<double> full) override;
  std::vector<Number> getParameter(int64_t rank, llvm::StringRef name) override;
  std::vector<Number> getState(llvm::StringRef role,
                               llvm::StringRef name) override;

private:
  mlir::LogicalResult initializeState() override;
  PerRank deliver(mlir::FlatSymbolRefAttr source,
                  const Format &format) override;
  mlir::LogicalResult evaluateOwn(mlir::Operation &op) override;
  mlir::FailureOr<Outcome> finish() override;

  /// The process groups of a collective on |input| over |axes|.
  std::vector<std::vector<int64_t>> getGroups(mlir::ArrayAttr axes,
                                              mlir::Value input);
  /// A zero.all_reduce or zero.reduce_scatter.
  template <typename OpT> void evaluateSum(OpT op);
  /// The slices of the ranks of each process group over |axes|, joined.
  PerRank gather(mlir::Value input, mlir::ArrayRef<mlir::StringAttr> axes);
  void evaluateAssign(AssignOp op);
  void evaluateArrivals(ArrivalCountOp op);
  void evaluateDelivered(DeliveredCountOp op);
  void evaluateCountReplicatedOnce(CountReplicatedOnceOp op);
  Number evaluateOutcome(OutcomeOp op, int64_t rank);
  void evaluatePrepare(PrepareOp op);
  void evaluateUpdate(UpdateBucketOp op);

  /// The place of a parameter in its bucket.
  struct Place {
    BucketState *bucket = nullptr;
    Range range;
  };
  Place find(llvm::StringRef parameter);
  /// The positions of the elements of |parameter| that |rank| holds.
  std::vector<int64_t> getHeld(llvm::StringRef parameter, int64_t rank) {
    return ranks.getHeld(findParameter(parameter).getValueType(), rank);
  }

  llvm::StringMap<BucketState> buckets;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_SHARDEDSTEP_H
