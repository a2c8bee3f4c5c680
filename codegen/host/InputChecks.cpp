//===- InputChecks.cpp - What apply demands of its inputs -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/InputChecks.h"

using namespace mlir;
using namespace zero;

/// One scalar slot of a zrt.slots.
using Slot = std::pair<StringRef, int64_t>;

/// The symbols that calls of a step name. A table that no call names changes no
/// step.
static llvm::DenseSet<StringAttr> findNamed(zrt::ProgramOp program) {
  llvm::DenseSet<Attribute> handlers; // without those of units
  for (auto op : program.getOps<zrt::TransitionOp>())
    handlers.insert(op.getHandlers().begin(), op.getHandlers().end());
  for (auto op : program.getOps<zrt::SequenceOp>())
    handlers.insert(op.getHandlers().begin(), op.getHandlers().end());
  llvm::DenseSet<StringAttr> named;
  for (auto handler : program.getOps<zrt::HandlerOp>())
    if (handlers.contains(FlatSymbolRefAttr::get(handler)))
      for (Operation &call : handler.getBody().front())
        call.getAttrDictionary().walk(
            [&](FlatSymbolRefAttr symbol) { named.insert(symbol.getAttr()); });
  return named;
}

/// The scalar slots that kernels read, and the ones that live across steps.
static llvm::DenseSet<Slot> findRoots(zrt::ProgramOp program,
                                      const llvm::DenseSet<StringAttr> &named) {
  llvm::StringMap<int64_t> sizes;
  for (auto slots : program.getOps<zrt::SlotsOp>())
    sizes[slots.getSymName()] = slots.size();
  llvm::DenseSet<Slot> roots;
  for (auto segments : program.getOps<zrt::SegmentsOp>()) {
    if (!named.contains(segments.getSymNameAttr()))
      continue;
    for (auto row : segments.getScalars().getAsRange<FlatSymbolRefAttr>())
      for (int64_t i = 0; i < sizes.lookup(row.getValue()); ++i)
        roots.insert({row.getValue(), i});
  }
  for (auto state : program.getOps<zrt::ScalarStateOp>())
    roots.insert({state.getSlots(), state.getIndex()});
  return roots;
}

/// Adds to |slots| the scalar slots that |program| loads to compute them.
/// Returns whether any is new.
static bool addLoaded(zrt::ScalarsOp program, llvm::DenseSet<Slot> &slots) {
  bool isChanged = false;
  llvm::DenseSet<Value> needed;
  for (Operation &op : llvm::reverse(program.getBody().front())) {
    if (auto store = dyn_cast<zrt::StoreSlotOp>(op)) {
      if (slots.contains({store.getSlots(), store.getIndex()}))
        needed.insert(store.getValue());
      continue;
    }
    if (!llvm::any_of(op.getResults(),
                      [&](Value result) { return needed.contains(result); }))
      continue;
    if (auto load = dyn_cast<zrt::LoadSlotOp>(op))
      isChanged |= slots.insert({load.getSlots(), load.getIndex()}).second;
    else
      needed.insert(op.operand_begin(), op.operand_end());
  }
  return isChanged;
}

SmallVector<zero_rt_input_check> zero::findInputChecks(zrt::ProgramOp program) {
  llvm::DenseSet<StringAttr> named = findNamed(program);
  llvm::DenseSet<Slot> slots = findRoots(program, named);
  SmallVector<zrt::ScalarsOp> programs;
  for (auto scalars : program.getOps<zrt::ScalarsOp>())
    if (named.contains(scalars.getSymNameAttr()))
      programs.push_back(scalars);
  // Programs are mostly in the order in which they run, so few rounds are
  // needed.
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (zrt::ScalarsOp scalars : llvm::reverse(programs))
      isChanged |= addLoaded(scalars, slots);
  }
  return llvm::map_to_vector(program.getInputSlots(), [&](zrt::SlotsOp input) {
    if (input.getPositive())
      return ZERO_RT_INPUT_POSITIVE;
    bool isHyper = !input.isTokens() && slots.contains({input.getSymName(), 0});
    return isHyper ? ZERO_RT_INPUT_FINITE : ZERO_RT_INPUT_FREE;
  });
}
