//===- CheckPhase.cpp - Reports ops that do not belong to a phase ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/check/Passes.h"

namespace zero {
#define GEN_PASS_DEF_CHECKPHASEPASS
#include "passes/check/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

static bool isLogicalOnly(Operation *op, SymbolTableCollection &symbols) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return true;
  if (auto backward = dyn_cast<BackwardOp>(op))
    return llvm::any_of(backward.getSources().getAsRange<FlatSymbolRefAttr>(),
                        [&](FlatSymbolRefAttr source) {
                          return isa_and_present<ParameterOp>(
                              symbols.lookupNearestSymbolFrom(op, source));
                        });
  return isa<NormOp, ClipOp, UpdateOp>(op);
}

static bool isShardedOnly(Operation *op) {
  return isa<BucketOp, AllReduceOp, ReduceScatterOp, AllGatherOp, PrepareOp,
             UpdateBucketOp, AssignOp, ArrivalCountOp, DeliveredCountOp,
             GroupOutcomeOp, OutcomeOp, StackOp, UnstackOp, FactorOp,
             SumSquaresOp, CountReplicatedOnceOp, ReadScaleOp, AdvanceOp,
             TransferOp>(op);
}

namespace {
struct CheckPhasePass : zero::impl::CheckPhasePassBase<CheckPhasePass> {
  using CheckPhasePassBase::CheckPhasePassBase;

  void runOnOperation() override {
    SymbolTableCollection symbols;
    std::function<bool(Operation *)> isIllegal;
    if (phase == "logical") {
      isIllegal = [](Operation *op) {
        return isShardedOnly(op) || isa<zrt::ProgramOp>(op);
      };
    } else if (phase == "sharded") {
      isIllegal = [&](Operation *op) {
        return isLogicalOnly(op, symbols) ||
               isa<TransferOp, zrt::ProgramOp>(op);
      };
    } else if (phase == "placed") {
      isIllegal = [&](Operation *op) {
        return isLogicalOnly(op, symbols) || isa<zrt::ProgramOp>(op);
      };
    } else if (phase == "lowered" || phase == "scheduled") {
      isIllegal = [](Operation *op) { return isa<StepOp>(op); };
    } else {
      emitError(getOperation().getLoc())
          << "phase must be logical, sharded, placed, lowered or scheduled, "
             "got '"
          << phase << "'";
      return signalPassFailure();
    }
    bool failed = false;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isIllegal(op))
        return WalkResult::advance();
      op->emitOpError() << "does not belong to the " << phase << " phase";
      failed = true;
      return WalkResult::skip();
    });
    failed |= mlir::failed(zrt::verifyParameters(
        getOperation(), [](Operation *op) { return op->emitError(); }));
    if (failed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
