//===- Slots.cpp - Who writes the scalars of a program --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Slots.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

SlotWriters prove::readSlotWriters(zrt::ProgramOp program,
                                   const SymbolTable &symbols) {
  SlotWriters writers;
  auto add = [&](Operation *op, FlatSymbolRefAttr slots, int64_t index) {
    writers[{slots.getAttr(), index}].push_back(op);
  };
  auto addAll = [&](Operation *op, FlatSymbolRefAttr slots) {
    int64_t size = symbols.lookup<zrt::SlotsOp>(slots.getAttr()).size();
    for (int64_t i = 0; i < size; ++i)
      add(op, slots, i);
  };
  program.walk([&](Operation *op) {
    if (auto store = dyn_cast<zrt::StoreSlotOp>(op))
      add(op, store.getSlotsAttr(), store.getIndex());
    else if (auto launch = dyn_cast<zrt::LaunchOp>(op);
             launch && launch.getSum())
      add(op, launch.getSumAttr(), launch.getSumIndex());
    else if (auto count = dyn_cast<zrt::CountArrivalsOp>(op))
      addAll(op, count.getSlotsAttr());
    else if (auto sum = dyn_cast<zrt::AllReduceScalarsOp>(op))
      addAll(op, sum.getSlotsAttr());
    else if (auto once = dyn_cast<zrt::CountReplicatedOnceOp>(op))
      add(op, once.getSlotsAttr(), once.getIndex());
    else if (auto state = dyn_cast<zrt::ScalarStateOp>(op))
      add(op, state.getSlotsAttr(), state.getIndex());
  });
  for (auto symbol : program.getInputs().getAsRange<FlatSymbolRefAttr>())
    addAll(program, symbol);
  return writers;
}
