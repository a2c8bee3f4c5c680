//===- KeepUnits.cpp - Units that stay unsharded --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/Passes.h"

using namespace mlir;
using namespace zero;

namespace zero {
#define GEN_PASS_DEF_KEEPUNITSPASS
#include "passes/layout/Passes.h.inc"
} // namespace zero

namespace {
/// Keeps all units, or the last one of each pipeline stage.
struct KeepUnitsPass : zero::impl::KeepUnitsPassBase<KeepUnitsPass> {
  using KeepUnitsPassBase::KeepUnitsPassBase;

  void runOnOperation() override {
    if (units != "last" && units != "all") {
      getOperation().emitError()
          << "units must be last or all, got '" << units << "'";
      return signalPassFailure();
    }
    auto all = llvm::to_vector(getOperation().getOps<UnitOp>());
    if (all.empty()) {
      getOperation().emitError()
          << "the module has no zero.unit, so none can be kept; declare units, "
             "or leave out keep-after-forward";
      return signalPassFailure();
    }
    SymbolTableCollection symbols;
    SmallVector<SmallVector<AxisCoordinate>> covered; // by units behind
    for (UnitOp unit : llvm::reverse(all)) {
      bool isLast = false;
      for (const auto &stage : unit.getPlace(symbols).getStages()) {
        bool isFree = !llvm::is_contained(covered, stage);
        if (isFree)
          covered.push_back(stage);
        isLast |= isFree;
      }
      if (isLast || units == "all")
        unit.setKept(true);
    }
  }
};
} // namespace
