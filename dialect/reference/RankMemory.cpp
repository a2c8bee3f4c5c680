//===- RankMemory.cpp - What one simulated rank holds ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/RankMemory.h"

#include <cmath>

using namespace mlir;
using namespace zero;
using zrt::Access;

/// The one order of a sum: 32 lanes, blocks of 4096 elements.
static constexpr int64_t kLanes = 32;
static constexpr int64_t kBlock = 4096;

RankMemory::RankMemory(zrt::ProgramOp program, int64_t rank, int64_t ranks)
    : rank(rank), ranks(ranks) {
  for (auto op : program.getOps<zrt::BufferOp>()) {
    int64_t elements = op.getNumElements();
    if (op.isSharded())
      elements /= ranks;
    // Gradients are written before they are read: anything else must show.
    bool poison = op.getOnDemand() || op.getRole() == zrt::Role::gradient;
    buffers[FlatSymbolRefAttr::get(op)].assign(
        elements, poison ? NAN : op.getFill().convertToDouble());
  }
  for (auto op : program.getOps<zrt::SlotsOp>())
    slots[FlatSymbolRefAttr::get(op)].assign(op.getInitial().begin(),
                                             op.getInitial().end());
}

namespace {
/// Sums in the fixed order.
class BlockSum {
public:
  void add(int64_t element, double value) {
    if (element % kBlock == 0)
      closeBlock();
    lanes[element % kLanes] += value;
    open = true;
  }
  double finish() {
    closeBlock();
    return total;
  }

private:
  void closeBlock() {
    if (!open)
      return;
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half; ++i)
        lanes[i] += lanes[i + half];
    total += lanes[0];
    std::fill(std::begin(lanes), std::end(lanes), 0.0);
    open = false;
  }

  double lanes[kLanes] = {};
  double total = 0;
  bool open = false;
};
} // namespace

void RankMemory::launch(zrt::LaunchOp op, zrt::KernelOp kernel,
                        zrt::SegmentsOp segments, const ScalarBody &body) {
  Calculator calculator(Arithmetic::Typed);
  int64_t elements = segments.getEnds().back();
  auto [first, last] = op.getOwn() ? getSlice(elements)
                                   : std::pair<int64_t, int64_t>(0, elements);
  BlockSum sum;
  int64_t begin = 0;
  for (auto [s, segmentEnd] : llvm::enumerate(segments.getEnds())) {
    ArrayRef<double> scalars;
    if (!segments.getScalars().empty())
      scalars = slots[segments.getScalars()[segments.getRows()[s]]];
    scalars = scalars.take_front(kernel.getNumScalars());
    int64_t from = std::max(begin, first);
    int64_t to = std::min(segmentEnd, last);
    begin = segmentEnd;
    if (kernel.getPredicated() && scalars[0] != 0)
      continue;
    for (int64_t i = from; i < to; ++i) {
      SmallVector<Number> arguments;
      SmallVector<double *> written;
      for (unsigned k = 0; k < kernel.getNumArrays(); ++k) {
        std::vector<double> &buffer = buffers[op.getBuffers()[k]];
        // A sharded buffer begins at this rank's slice.
        bool isWhole = static_cast<int64_t>(buffer.size()) == elements;
        double &element = buffer[isWhole ? i : i - first];
        if (kernel.getArrayAccess(k) != Access::write)
          arguments.push_back({element, 0});
        if (kernel.getArrayAccess(k) != Access::read)
          written.push_back(&element);
      }
      for (double scalar : scalars)
        arguments.push_back({scalar, 0});
      std::vector<Number> yields = body.run(calculator, arguments);
      for (size_t k = 0; k < written.size(); ++k)
        *written[k] = yields[k].value;
      if (kernel.getSums())
        sum.add(i - first, yields.back().value);
    }
  }
  if (op.getSumAttr())
    slots[op.getSumAttr()][op.getSumIndex()] = sum.finish();
}

void RankMemory::pack(zrt::KernelOp kernel, const ScalarBody &body,
                      ArrayRef<double> gradient, FlatSymbolRefAttr buffer,
                      int64_t offset) {
  Calculator calculator(Arithmetic::Typed);
  std::vector<double> &target = buffers[buffer];
  bool adds = kernel.getArrayAccess(1) == Access::update;
  for (auto [i, value] : llvm::enumerate(gradient)) {
    double &element = target[offset + i];
    SmallVector<Number> arguments{{roundTo(value, kernel.getArrayType(0)), 0}};
    if (adds)
      arguments.push_back({element, 0});
    element = body.run(calculator, arguments)[0].value;
  }
}

void RankMemory::runScalars(const ScalarBody &body) {
  body.run(Calculator(Arithmetic::Typed), {},
           [&](Operation &op, llvm::DenseMap<Value, Number> &numbers) {
             if (auto load = dyn_cast<zrt::LoadSlotOp>(op))
               numbers[load.getValue()] = {
                   slots[load.getSlotsAttr()][load.getIndex()], 0};
             else if (auto store = dyn_cast<zrt::StoreSlotOp>(op))
               slots[store.getSlotsAttr()][store.getIndex()] =
                   numbers.lookup(store.getValue()).value;
           });
}
