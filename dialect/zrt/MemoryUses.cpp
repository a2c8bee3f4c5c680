//===- MemoryUses.cpp - What calls of the runtime touch -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zrt/MemoryUses.h"

using namespace mlir;
using namespace zrt;

using Uses = SmallVectorImpl<MemoryUse>;

ProgramSymbols::ProgramSymbols(ProgramOp program)
    : table(program),
      // No symbol has these names.
      hostScalars(StringAttr::get(program.getContext(), "<host scalars>")),
      arrivingGradient(
          StringAttr::get(program.getContext(), "<arriving gradient>")) {
  for (auto op : program.getOps<BucketTableOp>())
    tables[op.getBucketAttr()] = op;
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

namespace {
/// Collects what one call touches.
class Collector {
public:
  Collector(const ProgramSymbols &symbols, Uses &uses)
      : symbols(symbols), uses(uses) {}

  void read(FlatSymbolRefAttr symbol) { add(symbol, false); }
  void write(FlatSymbolRefAttr symbol) { add(symbol, true); }
  void writeGradient(FlatSymbolRefAttr bucket) {
    if (BucketTableOp table = symbols.getTable(bucket))
      write(table.getGradientAttr());
  }
  void readAllSlots() {
    for (StringAttr slots : symbols.getSlots())
      uses.push_back({slots, false});
  }
  void touchHostScalars(bool writes) {
    uses.push_back({symbols.getHostScalars(), writes});
  }

private:
  void add(FlatSymbolRefAttr symbol, bool writes) {
    uses.push_back({symbols.getMemory(symbol), writes});
  }

  const ProgramSymbols &symbols;
  Uses &uses;
};
} // namespace

//===----------------------------------------------------------------------===//
// Calls that only concern the host, or the schedule
//===----------------------------------------------------------------------===//

void SetRoleOp::getMemoryUses(const ProgramSymbols &, FlatSymbolRefAttr,
                              Uses &) {}
void RecordOp::getMemoryUses(const ProgramSymbols &, FlatSymbolRefAttr,
                             Uses &) {}
void WaitOp::getMemoryUses(const ProgramSymbols &, FlatSymbolRefAttr, Uses &) {}
void WaitWritableOp::getMemoryUses(const ProgramSymbols &, FlatSymbolRefAttr,
                                   Uses &) {}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

void AllocateOp::getMemoryUses(const ProgramSymbols &symbols, FlatSymbolRefAttr,
                               Uses &uses) {
  Collector(symbols, uses).write(getBufferAttr());
}

void ReleaseOp::getMemoryUses(const ProgramSymbols &symbols, FlatSymbolRefAttr,
                              Uses &uses) {
  Collector(symbols, uses).write(getBufferAttr());
}

void PackOp::getMemoryUses(const ProgramSymbols &symbols,
                           FlatSymbolRefAttr arriving, Uses &uses) {
  if (!arriving)
    return;
  uses.push_back({symbols.getArrivingGradient()});
  Collector(symbols, uses).writeGradient(arriving);
}

void FillMissingOp::getMemoryUses(const ProgramSymbols &symbols,
                                  FlatSymbolRefAttr, Uses &uses) {
  Collector(symbols, uses).writeGradient(getBucketAttr());
}

void CopyOp::getMemoryUses(const ProgramSymbols &symbols, FlatSymbolRefAttr,
                           Uses &uses) {
  Collector collect(symbols, uses);
  collect.read(getSourceAttr());
  collect.write(getTargetAttr());
}

void KeepOnRootOp::getMemoryUses(const ProgramSymbols &symbols,
                                 FlatSymbolRefAttr, Uses &uses) {
  Collector(symbols, uses).write(getBufferAttr());
}

void LaunchOp::getMemoryUses(const ProgramSymbols &symbols, FlatSymbolRefAttr,
                             Uses &uses) {
  Collector collect(symbols, uses);
  auto kernel = symbols.lookup<KernelOp>(getKernelAttr());
  bool isOnHost = false;
  for (auto [i, buffer] :
       llvm::enumerate(getBuffers().getAsRange<FlatSymbolRefAttr>())) {
    if (kernel.getArrayAccess(i) == zrt::Access::read)
      collect.read(buffer);
    else
      collect.write(buffer);
    isOnHost = symbols.lookup<BufferOp>(buffer).getSpace() == Space::host;
  }
  bool readsScalars = kernel.getNumScalars() > 0;
  // On the host, scalars and sums are in the copy of the host.
  if (isOnHost && (readsScalars || getSumAttr()))
    collect.touchHostScalars(/*writes=*/static_cast<bool>(getSumAttr()));
  if (!isOnHost && readsScalars)
    for (auto slots : symbols.lookup<SegmentsOp>(getSegmentsAttr())
                          .getScalars()
                          .getAsRange<FlatSymbolRefAttr>())
      collect.read(slots);
  if (getSumAttr())
    collect.write(getSumAttr());
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void AllReduceOp::getMemoryUses(const ProgramSymbols &symbols,
                                FlatSymbolRefAttr, Uses &uses) {
  Collector collect(symbols, uses);
  collect.read(getBufferAttr());
  collect.write(getResultBuffer());
}

void AllGatherOp::getMemoryUses(const ProgramSymbols &symbols,
                                FlatSymbolRefAttr, Uses &uses) {
  Collector(symbols, uses).write(getBufferAttr());
}

void ReduceScatterOp::getMemoryUses(const ProgramSymbols &symbols,
                                    FlatSymbolRefAttr, Uses &uses) {
  Collector collect(symbols, uses);
  collect.read(getSourceAttr());
  collect.write(getTargetAttr());
}

void ReduceScatterAddOp::getMemoryUses(const ProgramSymbols &symbols,
                                       FlatSymbolRefAttr, Uses &uses) {
  Collector collect(symbols, uses);
  collect.read(getSourceAttr());
  collect.write(getTargetAttr());
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

void RunScalarsOp::getMemoryUses(const ProgramSymbols &symbols,
                                 FlatSymbolRefAttr, Uses &uses) {
  Collector collect(symbols, uses);
  auto scalars = symbols.lookup<ScalarsOp>(getProgramAttr());
  for (Operation &inner : scalars.getBody().front())
    if (auto load = dyn_cast<LoadSlotOp>(inner))
      collect.read(load.getSlotsAttr());
    else if (auto store = dyn_cast<StoreSlotOp>(inner))
      collect.write(store.getSlotsAttr());
}

void CountArrivalsOp::getMemoryUses(const ProgramSymbols &symbols,
                                    FlatSymbolRefAttr, Uses &uses) {
  Collector(symbols, uses).write(getSlotsAttr());
}

void CountReplicatedOnceOp::getMemoryUses(const ProgramSymbols &symbols,
                                          FlatSymbolRefAttr, Uses &uses) {
  Collector(symbols, uses).write(getSlotsAttr());
}

void AllReduceScalarsOp::getMemoryUses(const ProgramSymbols &symbols,
                                       FlatSymbolRefAttr, Uses &uses) {
  Collector(symbols, uses).write(getSlotsAttr());
}

void CopyScalarsOp::getMemoryUses(const ProgramSymbols &symbols,
                                  FlatSymbolRefAttr, Uses &uses) {
  Collector collect(symbols, uses);
  collect.readAllSlots();
  collect.touchHostScalars(/*writes=*/true);
}

void CommitOp::getMemoryUses(const ProgramSymbols &symbols, FlatSymbolRefAttr,
                             Uses &uses) {
  // All slots are copied, for `results`.
  Collector(symbols, uses).readAllSlots();
}
