//===- PromoteSlots.cpp - Scalars that need no memory ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Slots are promoted here, and not by MLIR's mem2reg: they are symbols and not
// allocations, programs other than the one that stores read them, and so do
// kernels and calls of the runtime.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Passes.h"

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace zero {
#define GEN_PASS_DEF_PROMOTESLOTSPASS
#include "passes/lower/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

/// Replaces loads of what the same scalar program stored before.
static void forwardStores(zrt::ScalarsOp scalars) {
  llvm::DenseMap<std::pair<StringAttr, int64_t>, Value> stored;
  for (Operation &op : llvm::make_early_inc_range(scalars.getBody().front())) {
    if (auto store = dyn_cast<zrt::StoreSlotOp>(op)) {
      stored[{store.getSlotsAttr().getAttr(), store.getIndex()}] =
          store.getValue();
    } else if (auto load = dyn_cast<zrt::LoadSlotOp>(op)) {
      auto it = stored.find(
          {load.getSlotsAttr().getAttr(), int64_t(load.getIndex())});
      if (it == stored.end())
        continue;
      load.replaceAllUsesWith(it->second);
      load.erase();
    }
  }
}

using SlotNames = llvm::DenseSet<StringAttr>;

/// The slots of |program| that anything refers to but scalar programs.
static SlotNames findReadElsewhere(zrt::ProgramOp program) {
  SlotNames read;
  program->walk([&](Operation *op) {
    if (!isa<zrt::StoreSlotOp, zrt::LoadSlotOp>(op))
      op->getAttrDictionary().walk(
          [&](FlatSymbolRefAttr symbol) { read.insert(symbol.getAttr()); });
  });
  return read;
}

/// Adds the slots that |programs| load to |read|.
static SlotNames addLoaded(SlotNames read, ArrayRef<zrt::ScalarsOp> programs) {
  for (zrt::ScalarsOp scalars : programs)
    for (auto load : scalars.getBody().getOps<zrt::LoadSlotOp>())
      read.insert(load.getSlotsAttr().getAttr());
  return read;
}

/// Removes stores of what is not in |read| or is stored again, and what only
/// they need. Returns whether a load is gone, so that less is read.
static bool removeStores(zrt::ScalarsOp scalars, const SlotNames &read) {
  bool hasRemovedLoad = false;
  // No load is left behind a store.
  llvm::DenseSet<std::pair<StringAttr, int64_t>> overwritten;
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(scalars.getBody().front()))) {
    auto store = dyn_cast<zrt::StoreSlotOp>(op);
    bool isRead =
        store && read.contains(store.getSlotsAttr().getAttr()) &&
        overwritten.insert({store.getSlotsAttr().getAttr(), store.getIndex()})
            .second;
    bool isLoad = isa<zrt::LoadSlotOp>(op);
    bool isUnused = op.use_empty() && (isLoad || isPure(&op)) &&
                    !op.hasTrait<OpTrait::IsTerminator>();
    if ((store && !isRead) || isUnused) {
      hasRemovedLoad |= isLoad;
      op.erase();
    }
  }
  return hasRemovedLoad;
}

namespace {
class PromoteSlotsPass
    : public zero::impl::PromoteSlotsPassBase<PromoteSlotsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<zrt::ProgramOp>()) {
      auto programs = llvm::to_vector(program.getOps<zrt::ScalarsOp>());
      llvm::for_each(programs, forwardStores);
      SlotNames elsewhere = findReadElsewhere(program);
      for (bool isChanged = true; isChanged;) {
        isChanged = false;
        SlotNames read = addLoaded(elsewhere, programs);
        for (zrt::ScalarsOp scalars : programs)
          isChanged |= removeStores(scalars, read);
      }
      SlotNames read = addLoaded(elsewhere, programs);
      for (auto slots :
           llvm::make_early_inc_range(program.getOps<zrt::SlotsOp>()))
        if (!read.contains(slots.getSymNameAttr()))
          slots.erase();
    }
  }
};
} // namespace
