//===- PlaceAccumulators.cpp - Moves reductions into the backward loop ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/accumulate/Passes.h"

#include "mlir/IR/Builders.h"

namespace zero {
#define GEN_PASS_DEF_PLACEACCUMULATORSPASS
#include "passes/accumulate/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

/// The reduce_scatter of |sum|, if |sum| has no other use; else null.
static ReduceScatterOp getOnlyUse(Value sum) {
  return sum.hasOneUse() ? dyn_cast<ReduceScatterOp>(*sum.getUsers().begin())
                         : ReduceScatterOp();
}

/// The reduce dtype of |scatter| where its operand is |gradient|, that of one
/// backward pass. A gradient that arrived in a narrower type, in one piece, has
/// no bits that this type lacks.
static TypeAttr getReduceDtype(ReduceScatterOp scatter, Value gradient,
                               SymbolTableCollection &symbols) {
  auto result = dyn_cast<OpResult>(gradient);
  auto backward =
      result ? dyn_cast<BackwardOp>(result.getOwner()) : BackwardOp();
  if (scatter.getReduceDtypeAttr() || !backward)
    return scatter.getReduceDtypeAttr();
  auto bucket = symbols.lookupNearestSymbolFrom<BucketOp>(
      backward,
      cast<FlatSymbolRefAttr>(backward.getSources()[result.getResultNumber()]));
  if (!bucket || !bucket.arrivesNarrower(symbols))
    return nullptr;
  return TypeAttr::get(bucket.getArrivalType());
}

/// Moves the reductions of |op|'s sums into its body.
static void moveReductionsIn(MicroBatchesOp op,
                             SymbolTableCollection &symbols) {
  if (llvm::none_of(op.getSums(), [](Value sum) { return getOnlyUse(sum); }))
    return;
  Operation *yield = op.getBody().front().getTerminator();
  OpBuilder builder(yield);
  for (auto [i, sum] : llvm::enumerate(op.getSums()))
    if (ReduceScatterOp scatter = getOnlyUse(sum)) {
      Value gradient = yield->getOperand(i);
      TypeAttr reduceDtype = getReduceDtype(scatter, gradient, symbols);
      yield->setOperand(i, builder.create<ReduceScatterOp>(
                               scatter.getLoc(), gradient,
                               scatter.getAxesAttr(), reduceDtype));
    }
  builder.setInsertionPoint(op);
  auto moved = builder.create<MicroBatchesOp>(
      op.getLoc(), op.getAccumulatorType(), op.getBody());
  for (auto [old, sum] : llvm::zip_equal(op.getSums(), moved.getSums())) {
    if (ReduceScatterOp scatter = getOnlyUse(old)) {
      scatter.replaceAllUsesWith(sum);
      scatter.erase();
    } else {
      old.replaceAllUsesWith(sum);
    }
  }
  op.erase();
}

namespace {
struct PlaceAccumulatorsPass
    : zero::impl::PlaceAccumulatorsPassBase<PlaceAccumulatorsPass> {
  using PlaceAccumulatorsPassBase::PlaceAccumulatorsPassBase;

  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto step : getOperation().getOps<StepOp>()) {
      if (apart && step.getOneBackward()) {
        step.emitError() << "is one_backward, so it has no accumulator; leave "
                            "'accumulate=apart' out";
        return signalPassFailure();
      }
      if (apart && stage >= 2) {
        step.emitError() << "keeps gradients as they arrive at stage "
                         << static_cast<int>(stage)
                         << " in any case; leave 'accumulate=apart' out";
        return signalPassFailure();
      }
      if (stage < 2 && !step.getOneBackward()) {
        for (auto op : step.getBody().getOps<MicroBatchesOp>())
          op.setApart(apart);
        continue;
      }
      for (auto op : llvm::to_vector(step.getBody().getOps<MicroBatchesOp>()))
        moveReductionsIn(op, symbols);
    }
  }
};
} // namespace
