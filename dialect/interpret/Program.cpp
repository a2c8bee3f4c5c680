//===- Program.cpp - What a scheduled program owns, on all ranks ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Program.h"

#include <limits>

using namespace mlir;
using namespace zero;

static constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();

void Buffer::allocate(int64_t rank, double fill) {
  contents[rank] =
      Array(*format, held[rank].size(), {roundTo(*format, fill), 0});
  allocated[rank] = true;
}

LogicalResult Program::initialize(const Ranks &ranks) {
  int64_t numRanks = ranks.size();
  int64_t numSlots = 0;
  std::vector<Number> initial;
  for (auto slotsOp : op.getOps<zrt::SlotsOp>()) {
    firstSlots[slotsOp.getSymName()] = numSlots;
    numSlots += slotsOp.size();
    for (double value : slotsOp.getInitial())
      initial.push_back({value, 0});
  }
  slots.assign(numRanks, initial);

  for (auto bufferOp : op.getOps<zrt::BufferOp>()) {
    Buffer &buffer = buffers[bufferOp.getSymName()];
    buffer.op = bufferOp;
    buffer.format = getFormat(bufferOp.getValueType().getElementType());
    buffer.contents.resize(numRanks);
    buffer.allocated.resize(numRanks);
    buffer.held =
        ranks.getSlices(bufferOp.getRowLength(), bufferOp.getOwners());
    buffer.isOn = ranks.getHolders(bufferOp.getValueType());
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      if (!buffer.isOn[rank])
        buffer.held[rank] = {};
      else if (!bufferOp.getOnDemand())
        buffer.allocate(rank, bufferOp.getFill().convertToDouble());
    }
  }

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
        [&](FlatSymbolRefAttr symbol) { return getFirstSlot(symbol); });
    if (failed(body))
      return failure();
    scalars[scalarsOp.getSymName()] =
        std::make_unique<ScalarBody>(std::move(*body));
  }
  return success();
}

void Program::poisonMemoryOf(FlatSymbolRefAttr symbol, int64_t rank) {
  FlatSymbolRefAttr memory = getBuffer(symbol).op.getMemory();
  for (auto &entry : buffers)
    if (entry.second.op.getMemory() == memory && entry.second.allocated[rank])
      entry.second.allocate(rank, kPoison);
}

void Program::poisonGradients() {
  for (auto &entry : buffers) {
    Buffer &buffer = entry.second;
    if (buffer.op.getRole() != zrt::Role::gradient || buffer.op.getOnDemand())
      continue;
    for (size_t rank = 0; rank < buffer.contents.size(); ++rank)
      if (buffer.allocated[rank])
        buffer.allocate(rank, kPoison);
  }
}
