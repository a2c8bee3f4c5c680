//===- MemoryUses.cpp - What calls of the runtime touch -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zrt/MemoryUses.h"

#include "dialect/zrt/CallDescription.h"

using namespace mlir;
using namespace zrt;

ProgramSymbols::ProgramSymbols(ProgramOp program)
    : table(program),
      // No symbol has these names.
      hostScalars(StringAttr::get(program.getContext(), "<host scalars>")),
      arrivingGradient(
          StringAttr::get(program.getContext(), "<arriving gradient>")) {
  for (auto op : program.getOps<BucketTableOp>()) {
    tables[op.getBucketAttr()] = op;
    if (!op.getUnshardedAttr())
      continue;
    unsharded.insert(op.getUnshardedAttr());
    if (auto bucket =
            zrt::lookup<zero::BucketOp>(places, op, op.getBucketAttr()))
      partsOf[bucket.getUnitAttr()].push_back(
          {op.getBucketAttr(), op.getParametersAttr(), op.getUnshardedAttr()});
  }
  for (auto op : program.getOps<FrozenTableOp>()) {
    unsharded.insert(op.getUnshardedAttr());
    if (auto bucket =
            zrt::lookup<zero::FrozenBucketOp>(places, op, op.getBucketAttr()))
      partsOf[bucket.getUnitAttr()].push_back(
          {op.getBucketAttr(), op.getParametersAttr(), op.getUnshardedAttr(),
           /*isFrozen=*/true});
  }
  for (auto op : program.getOps<SlotsOp>())
    slots.push_back(op.getSymNameAttr());
}

std::string zrt::describeMemory(StringAttr memory) {
  StringRef name = memory.getValue();
  if (name.consume_front("<") && name.consume_back(">"))
    return ("the " + name).str();
  return ("@" + name).str();
}

StringAttr ProgramSymbols::getMemory(FlatSymbolRefAttr symbol) const {
  if (auto buffer = lookup<BufferOp>(symbol))
    return buffer.getMemory().getAttr();
  return symbol.getAttr();
}

SmallVector<MemoryUse>
ProgramSymbols::getUses(RuntimeCall call, FlatSymbolRefAttr arriving) const {
  SmallVector<MemoryUse> uses;
  call.getMemoryUses(*this, arriving, uses);
  zero::ValueType place = getPlace(places, call);
  if (!place || place.getPresent().empty())
    return uses;
  for (MemoryUse &use : uses) {
    auto buffer = table.lookup<BufferOp>(use.memory);
    use.isOptional =
        !buffer || buffer.getValueType().getPresent() != place.getPresent();
  }
  return uses;
}

void ProgramSymbols::addUse(FlatSymbolRefAttr symbol, bool writes,
                            SmallVectorImpl<MemoryUse> &uses) const {
  if (symbol)
    uses.push_back({getMemory(symbol), writes});
}

void ProgramSymbols::addAllSlots(SmallVectorImpl<MemoryUse> &uses) const {
  for (StringAttr symbol : slots)
    uses.push_back({symbol, false});
}

void zrt::addArgumentUses(Operation *call, const ProgramSymbols &symbols,
                          FlatSymbolRefAttr arriving,
                          SmallVectorImpl<MemoryUse> &uses) {
  using Kind = CallArgument::Kind;
  using Use = CallArgument::Use;
  CallDescription description(cast<RuntimeCall>(call));
  for (const CallArgument &argument : description.getArguments()) {
    bool writes = argument.use == Use::writes;
    if (argument.kind == Kind::buffers) {
      auto kernel = symbols.lookup<KernelOp>(argument.symbol);
      for (auto [i, buffer] :
           llvm::enumerate(argument.list.getAsRange<FlatSymbolRefAttr>()))
        symbols.addUse(buffer, kernel.getArrayAccess(i) != Access::read, uses);
    } else if (argument.use == Use::none) {
      continue;
    } else if (argument.kind == Kind::arrival ||
               argument.kind == Kind::bucket) {
      // The caller's tensor is read on the way to its bucket.
      if (argument.kind == Kind::arrival && arriving)
        uses.push_back({symbols.getArrivingGradient()});
      BucketTableOp table = symbols.getTable(
          argument.kind == Kind::bucket ? argument.symbol : arriving);
      if (table)
        symbols.addUse(table.getGradientAttr(), writes, uses);
    } else {
      symbols.addUse(argument.symbol, writes, uses);
    }
  }
}
