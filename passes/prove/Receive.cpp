//===- Receive.cpp - The gradients of a backward pass ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

void ProgramReader::receiveBucket(Node &node, zrt::TransitionOp transition,
                                  FlatSymbolRefAttr bucket) {
  calls->arriving = calls->getArrivals(bucket);
  runHandlers(transition, node.memory);
  calls->arriving = nullptr;
}

/// With a sequence: in the order in which buckets are closed, each as late as
/// may be; buckets that may be open by then must not be touched.
void ProgramReader::receiveInOrder(Node &node, zrt::TransitionOp transition) {
  auto sequence =
      symbols.lookup<zrt::SequenceOp>(transition.getSequenceAttr().getAttr());
  auto buckets =
      llvm::to_vector(sequence.getBuckets().getAsRange<FlatSymbolRefAttr>());
  auto getGradient = [&](size_t i) -> Contents & {
    return node.memory.get(calls->getArrivals(buckets[i]).getGradientAttr());
  };
  // The buckets that may be open when that at |from| is the first: the first of
  // each memory.
  auto getMayBeOpen = [&](size_t from) {
    llvm::SmallDenseSet<Attribute> memories;
    SmallVector<size_t> open;
    for (size_t i = from; i < buckets.size(); ++i)
      if (memories.insert(getGradient(i).op.getMemory()).second)
        open.push_back(i);
    return open;
  };
  auto requireOpen = [&](size_t from, const Twine &where) {
    for (size_t i : getMayBeOpen(from))
      if (!getGradient(i).allocated)
        proof.report.error(sequence)
            << FlatSymbolRefAttr::get(getGradient(i).op)
            << ", into which gradients may arrive at once, is not allocated "
            << where;
  };
  requireOpen(0, "in state '" + node.state.getValue() + "'");
  for (auto [i, handler] : llvm::enumerate(
           sequence.getHandlers().getAsRange<FlatSymbolRefAttr>())) {
    receiveBucket(node, transition, buckets[i]);
    for (size_t open : getMayBeOpen(i))
      if (open != i)
        calls->filling.insert(getGradient(open).op.getMemory().getAttr());
    runHandler(handler, node.memory);
    calls->filling.clear();
    requireOpen(i + 1, "behind @" + Twine(handler.getValue()));
  }
}

/// Checks that no two buckets have one memory for their gradients, which arrive
/// in any order where no sequence says otherwise. A bucket without elements
/// clears its pads.
void ProgramReader::checkOwnGradients() {
  llvm::DenseMap<StringAttr, zrt::BucketTableOp> owners;
  for (zrt::BucketTableOp op : arrivals) {
    auto buffer = symbols.lookup<zrt::BufferOp>(op.getGradientAttr().getAttr());
    StringAttr memory = buffer.getMemory().getAttr();
    auto [it, isNew] = owners.try_emplace(memory, op);
    if (!isNew)
      proof.report.error(op)
          << op.getGradientAttr() << " has memory in which gradients of "
          << it->second.getBucketAttr()
          << " arrive, too: the last one to arrive would stay";
  }
}

/// All gradients of the open backward pass arrive, or do not: that is in the
/// pieces.
void ProgramReader::receive(Node &node) {
  auto transition = getTransition(node.state, zrt::Event::arrive);
  if (!transition)
    return;
  if (transition.getNextAttr() != node.state)
    proof.report.error(transition)
        << "a gradient that arrives leads to state '" << transition.getNext()
        << "': what comes next would depend on the order of arrivals";
  int64_t packs = 0;
  for (auto symbol : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    for (Operation &call :
         symbols.lookup<zrt::HandlerOp>(symbol.getAttr()).getBody().front()) {
      if (isa<zrt::RecordOp, zrt::WaitOp, zrt::WaitWritableOp>(call))
        continue; // of the order only
      if (!isa<zrt::PackOp>(call)) {
        proof.report.opError(&call)
            << "runs once per arriving gradient, in an order that differs by "
               "rank"
            << (isa<zrt::Collective>(call) ? ": ranks would wait for each other"
                                           : "");
        return;
      }
      ++packs;
    }
  if (packs != 1) {
    proof.report.opError(transition)
        << "packs an arriving gradient " << packs << " times, expected once";
    return;
  }
  calls->inBackward = true;
  if (transition.getSequenceAttr())
    return receiveInOrder(node, transition);
  checkOwnGradients();
  for (zrt::BucketTableOp op : arrivals)
    receiveBucket(node, transition, op.getBucketAttr());
}
