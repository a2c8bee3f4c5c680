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

/// Whether |update| makes the slices that a rank keeps of a unit.
static bool keepsSlices(UpdateBucketOp update, SymbolTableCollection &symbols) {
  auto bucket =
      symbols.lookupNearestSymbolFrom<BucketOp>(update, update.getBucketAttr());
  auto type = cast<ValueType>(update.getParameters().getType());
  bool isSlice = !type.getAxesOfDim(type.getShape().size() - 1).empty();
  return bucket && bucket.getUnit() && isSlice &&
         llvm::all_of(update.getParameters().getUsers(),
                      [](Operation *user) { return isa<AssignOp>(user); });
}

/// Where |keepsParameters|, they stay on the host.
static LogicalResult offload(UpdateBucketOp update, bool keepsParameters) {
  Value gradient = update.getGradient();
  if (cast<ValueType>(gradient.getType()).isOnHost())
    return update.emitOpError() << "is on the host already; run "
                                   "zero-insert-offload once";
  OpBuilder builder(update);
  auto moved = builder.create<UpdateBucketOp>(
      update.getLoc(), update.getBucketAttr(), update.getOptimizerAttr(),
      update.getParameterTypeAttr(), moveToHost(builder, gradient),
      update.getOutcomes(), update.getRows(), update.getRowOfAttr());
  Value kept = moved.getParameters();
  if (!keepsParameters)
    kept =
        builder.create<TransferOp>(update.getLoc(), kept, MemorySpace::device);
  update.getParameters().replaceAllUsesWith(kept);
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

  /// Puts slices of frozen parameters on the host. Returns whether there are
  /// any.
  bool offloadFrozen() {
    bool hasAny = false;
    for (auto bucket : getOperation().getOps<FrozenBucketOp>())
      if (bucket.isSharded()) {
        bucket.setType(bucket.getValueType().withSpace(MemorySpace::host));
        hasAny = true;
      }
    return hasAny;
  }

  void runOnOperation() override {
    if (what == "none")
      return markAllAnalysesPreserved();
    if (what != "optimizer" && what != "parameters") {
      emitError(getOperation().getLoc())
          << "offload must be none, optimizer or parameters, got '" << what
          << "'";
      return signalPassFailure();
    }
    SymbolTableCollection symbols;
    bool keepsFrozen = what == "parameters" && offloadFrozen();
    for (auto step : getOperation().getOps<StepOp>()) {
      bool keepsAny = keepsFrozen;
      for (auto update :
           llvm::to_vector(step.getBody().getOps<UpdateBucketOp>())) {
        bool keeps = what == "parameters" && keepsSlices(update, symbols);
        keepsAny |= keeps;
        if (failed(offload(update, keeps)))
          return signalPassFailure();
      }
      if (what == "optimizer" || keepsAny)
        continue;
      step.emitError() << "step @" << step.getSymName()
                       << " has no slices of parameters to keep on the host, "
                          "which are those of units at stage 3; lower it at "
                          "stage 3, or offload 'optimizer'";
      return signalPassFailure();
    }
  }
};
} // namespace
