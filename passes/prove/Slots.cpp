//===- Slots.cpp - Who writes the scalars of a program --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Slots.h"

#include "dialect/zrt/CallDescription.h"

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
    else if (auto state = dyn_cast<zrt::ScalarStateOp>(op))
      add(op, state.getSlotsAttr(), state.getIndex());
    auto call = dyn_cast<zrt::RuntimeCall>(op);
    if (!call)
      return;
    zrt::CallDescription description(call);
    for (const zrt::CallArgument &argument : description.getArguments()) {
      if (argument.use != zrt::CallArgument::Use::writes || !argument.symbol)
        continue;
      if (argument.kind == zrt::CallArgument::Kind::slot)
        add(op, argument.symbol, argument.number);
      else if (argument.kind == zrt::CallArgument::Kind::slots)
        addAll(op, argument.symbol);
    }
  });
  for (auto symbol : program.getInputs().getAsRange<FlatSymbolRefAttr>())
    addAll(program, symbol);
  return writers;
}
