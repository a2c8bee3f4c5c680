//===- Program.cpp - What a scheduled program owns, on all ranks ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Program.h"

#include "llvm/ADT/MapVector.h"

#include <limits>

using namespace mlir;
using namespace zero;

static constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

const PerRank &Program::read(FlatSymbolRefAttr buffer) {
  Contents &entry = contents[buffer.getValue()];
  touch(entry.memory, /*writes=*/false);
  return entry.elements;
}

PerRank &Program::write(FlatSymbolRefAttr buffer) {
  Contents &entry = contents[buffer.getValue()];
  touch(entry.memory, /*writes=*/true);
  if (!entry.sharers.empty())
    overwritten.push_back(buffer.getValue());
  return entry.elements;
}

void Program::destroySharers(ArrayRef<int64_t> ranks) {
  for (StringRef name : std::exchange(overwritten, {}))
    for (int64_t rank : ranks) {
      contents[name].isDestroyed[rank] = false;
      for (StringRef sharer : contents[name].sharers) {
        if (!buffers[sharer].allocated[rank] ||
            contents[sharer].isDestroyed[rank])
          continue;
        fill(sharer, rank, kPoison);
        contents[sharer].isDestroyed[rank] = true;
      }
    }
}

void Program::fill(StringRef name, int64_t rank, double value) {
  Buffer &buffer = buffers[name];
  contents[name].elements[rank] =
      Array(*buffer.format, buffer.held[rank].size(),
            {roundTo(*buffer.format, value), 0});
  buffer.allocated[rank] = true;
}

void Program::allocate(FlatSymbolRefAttr buffer, int64_t rank, double value) {
  touch(contents[buffer.getValue()].memory, /*writes=*/true);
  fill(buffer.getValue(), rank, value);
}

void Program::release(FlatSymbolRefAttr buffer, int64_t rank) {
  write(buffer)[rank] = Array();
  buffers[buffer.getValue()].allocated[rank] = false;
}

FlatSymbolRefAttr Program::findSharerInUse(FlatSymbolRefAttr symbol,
                                           int64_t rank) {
  StringAttr memory = contents[symbol.getValue()].memory;
  for (auto &entry : buffers) {
    zrt::BufferOp bufferOp = entry.second.op;
    if (bufferOp.getOnDemand() && entry.second.allocated[rank] &&
        contents[entry.first()].memory == memory)
      return FlatSymbolRefAttr::get(bufferOp);
  }
  return nullptr;
}

void Program::poisonMemoryOf(FlatSymbolRefAttr symbol, int64_t rank) {
  StringAttr memory = contents[symbol.getValue()].memory;
  for (auto &entry : contents)
    if (entry.second.memory == memory && buffers[entry.first()].allocated[rank])
      fill(entry.first(), rank, kPoison);
}

void Program::poisonGradients() {
  for (auto &entry : buffers) {
    const Buffer &buffer = entry.second;
    zrt::BufferOp bufferOp = buffer.op;
    if (bufferOp.getRole() != zrt::Role::gradient || bufferOp.getOnDemand())
      continue;
    for (size_t rank = 0; rank < buffer.allocated.size(); ++rank)
      if (buffer.allocated[rank])
        fill(entry.first(), rank, kPoison);
  }
}

//===----------------------------------------------------------------------===//
// Scalar slots
//===----------------------------------------------------------------------===//

ArrayRef<Number> Program::readSlots(FlatSymbolRefAttr symbol, int64_t rank) {
  const SlotRange &range = getSlotRange(symbol);
  touch(range.symbol, /*writes=*/false);
  return ArrayRef(slots[rank]).slice(range.first, range.size);
}

MutableArrayRef<Number> Program::writeSlots(FlatSymbolRefAttr symbol,
                                            int64_t rank) {
  const SlotRange &range = getSlotRange(symbol);
  touch(range.symbol, /*writes=*/true);
  return MutableArrayRef(slots[rank]).slice(range.first, range.size);
}

void Program::runScalars(const Calculator &calculator, FlatSymbolRefAttr symbol,
                         int64_t rank) {
  ScalarBody &body = *scalars[symbol.getValue()];
  body.run(calculator, {}, {}, slots[rank]);
  for (auto [slot, writes] : body.getSlots()) {
    auto range = llvm::partition_point(
        slotRanges, [slot = slot](const SlotRange &range) {
          return range.first + range.size <= slot;
        });
    touch(range->symbol, writes);
  }
}

std::optional<ArrayRef<Number>>
Program::readScalars(FlatSymbolRefAttr symbol, int64_t rank, bool isOnHost) {
  if (!isOnHost)
    return readSlots(symbol, rank);
  touch(symbols.getHostScalars(), /*writes=*/false);
  if (hostSlots[rank].empty())
    return std::nullopt;
  const SlotRange &range = getSlotRange(symbol);
  return ArrayRef(hostSlots[rank]).slice(range.first, range.size);
}

void Program::copySlotsToHost(int64_t rank) {
  for (const SlotRange &range : slotRanges)
    touch(range.symbol, /*writes=*/false);
  touch(symbols.getHostScalars(), /*writes=*/true);
  hostSlots[rank] = slots[rank];
}

//===----------------------------------------------------------------------===//
// What is known before the first step
//===----------------------------------------------------------------------===//

LogicalResult Program::initialize(const Ranks &ranks) {
  int64_t numRanks = ranks.size();
  std::vector<Number> initial;
  for (auto slotsOp : op.getOps<zrt::SlotsOp>()) {
    slotRangeOf[slotsOp.getSymName()] = slotRanges.size();
    slotRanges.push_back({slotsOp.getSymNameAttr(),
                          static_cast<int64_t>(initial.size()),
                          static_cast<int64_t>(slotsOp.size())});
    for (double value : slotsOp.getInitial())
      initial.push_back({value, 0});
  }
  slots.assign(numRanks, initial);
  hostSlots.resize(numRanks);

  for (auto bufferOp : op.getOps<zrt::BufferOp>()) {
    Buffer &buffer = buffers[bufferOp.getSymName()];
    buffer.op = bufferOp;
    buffer.format = getFormat(bufferOp.getValueType().getElementType());
    contents[bufferOp.getSymName()] = {bufferOp.getMemory().getAttr(),
                                       PerRank(numRanks),
                                       {},
                                       std::vector<bool>(numRanks)};
    buffer.allocated.resize(numRanks);
    buffer.held =
        ranks.getSlices(bufferOp.getRowLength(), bufferOp.getOwners());
    buffer.isOn = ranks.getHolders(bufferOp.getValueType());
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      if (!buffer.isOn[rank])
        buffer.held[rank] = {};
      else if (!bufferOp.getOnDemand())
        fill(bufferOp.getSymName(), rank, bufferOp.getFill().convertToDouble());
    }
  }

  llvm::MapVector<StringAttr, SmallVector<StringRef>> ofMemory;
  for (auto bufferOp : op.getOps<zrt::BufferOp>())
    ofMemory[bufferOp.getMemory().getAttr()].push_back(bufferOp.getSymName());
  for (auto &[memory, sharers] : ofMemory)
    for (StringRef one : sharers)
      for (StringRef other : sharers)
        if (one != other)
          contents[one].sharers.push_back(other);

  for (auto kernelOp : op.getOps<zrt::KernelOp>()) {
    FailureOr<ScalarBody> body = ScalarBody::create(kernelOp.getBody().front());
    if (failed(body))
      return failure();
    kernels[kernelOp.getSymName()] = {
        kernelOp, std::make_unique<ScalarBody>(std::move(*body))};
  }
  for (auto scalarsOp : op.getOps<zrt::ScalarsOp>()) {
    FailureOr<ScalarBody> body = ScalarBody::create(
        scalarsOp.getBody().front(),
        [&](FlatSymbolRefAttr symbol) { return getSlotRange(symbol).first; });
    if (failed(body))
      return failure();
    scalars[scalarsOp.getSymName()] =
        std::make_unique<ScalarBody>(std::move(*body));
  }
  return success();
}
