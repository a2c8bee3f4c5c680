//===- DeclareUnitOrder.cpp - Orders in which units are used --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace zero;

namespace zero {
#define GEN_PASS_DEF_DECLAREUNITORDERPASS
#include "passes/layout/Passes.h.inc"
} // namespace zero

namespace {
struct DeclareUnitOrderPass
    : zero::impl::DeclareUnitOrderPassBase<DeclareUnitOrderPass> {
  using DeclareUnitOrderPassBase::DeclareUnitOrderPassBase;
  void runOnOperation() override {
    auto units = llvm::to_vector(getOperation().getOps<UnitOp>());
    if (units.empty()) {
      getOperation().emitError()
          << "the module has no zero.unit, so there is no order to declare; "
             "declare units, or leave out unit-order";
      return signalPassFailure();
    }
    if (getOperation().getOps<UnitOrderOp>().empty())
      declareOrders(units);
    if (prefetch >= 0)
      for (auto order : getOperation().getOps<UnitOrderOp>())
        order.setPrefetch(prefetch);
  }

  void declareOrders(ArrayRef<UnitOp> units) {
    auto builder = OpBuilder::atBlockEnd(getOperation().getBody());
    UnitOp last = units.back();
    builder.setInsertionPointAfter(last);
    SmallVector<Attribute> forward;
    for (UnitOp unit : units)
      forward.push_back(FlatSymbolRefAttr::get(unit));
    SmallVector<Attribute> backward(llvm::reverse(forward));
    Location loc = last.getLoc();
    builder.create<UnitOrderOp>(loc, builder.getArrayAttr(forward));
    if (units.size() > 1)
      builder.create<UnitOrderOp>(loc, builder.getArrayAttr(backward));
  }
};
} // namespace
