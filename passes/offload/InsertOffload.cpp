//===- InsertOffload.cpp - Moves updates to the host ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/offload/Passes.h"

#include "mlir/IR/Builders.h"

namespace zero {
#define GEN_PASS_DEF_INSERTOFFLOADPASS
#include "passes/offload/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

/// |gradient| on the host. If the gradient is a product with scalars, the host
/// multiplies: a multiplication on the device would read and write all of the
/// memory once more.
static Value moveToHost(OpBuilder &builder, Value gradient) {
  auto scale = gradient.getDefiningOp<ScaleOp>();
  if (!scale)
    return builder.create<TransferOp>(gradient.getLoc(), gradient,
                                      MemorySpace::host);
  return builder.create<ScaleOp>(
      scale.getLoc(), moveToHost(builder, scale.getInput()), scale.getFactor());
}

static LogicalResult offload(UpdateBucketOp update) {
  Value gradient = update.getGradient();
  if (cast<ValueType>(gradient.getType()).isOnHost())
    return update.emitOpError() << "is on the host already; run "
                                   "zero-insert-offload once";
  OpBuilder builder(update);
  auto moved = builder.create<UpdateBucketOp>(
      update.getLoc(), update.getBucketAttr(), update.getOptimizerAttr(),
      update.getParameterTypeAttr(), moveToHost(builder, gradient),
      update.getOutcomes(), update.getRows(), update.getRowOfAttr());
  Value back = builder.create<TransferOp>(
      update.getLoc(), moved.getParameters(), MemorySpace::device);
  update.getParameters().replaceAllUsesWith(back);
  update.erase();
  // The product on the device is unused now.
  while (auto scale = gradient.getDefiningOp<ScaleOp>()) {
    if (!scale->use_empty())
      break;
    gradient = scale.getInput();
    scale.erase();
  }
  return success();
}

namespace {
struct InsertOffloadPass
    : zero::impl::InsertOffloadPassBase<InsertOffloadPass> {
  using InsertOffloadPassBase::InsertOffloadPassBase;

  void runOnOperation() override {
    if (what == "none")
      return markAllAnalysesPreserved();
    if (what != "optimizer") {
      emitError(getOperation().getLoc())
          << "offload must be none or optimizer, got '" << what << "'";
      return signalPassFailure();
    }
    for (auto step : getOperation().getOps<StepOp>())
      for (auto update :
           llvm::to_vector(step.getBody().getOps<UpdateBucketOp>()))
        if (failed(offload(update)))
          return signalPassFailure();
  }
};
} // namespace
