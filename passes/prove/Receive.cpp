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
  // By memory, in which one bucket may be open at a time: those that have yet
  // to arrive, the first one last.
  llvm::MapVector<StringAttr, SmallVector<StringAttr, 1>> waiting;
  SmallVector<StringAttr> memories;
  for (FlatSymbolRefAttr bucket : buckets) {
    auto gradient = calls->getArrivals(bucket).getGradientAttr();
    memories.push_back(node.memory.get(gradient).op.getMemory().getAttr());
    waiting[memories.back()].push_back(gradient.getAttr());
  }
  llvm::SmallDenseSet<StringAttr> filling;
  auto open = [&](StringAttr place, const Twine &where) {
    const Contents &gradient = node.memory.get(waiting[place].back());
    filling.insert(place);
    if (!gradient.allocated)
      proof.report.error(sequence)
          << FlatSymbolRefAttr::get(gradient.op)
          << ", into which gradients may arrive at once, is not allocated "
          << where;
  };
  for (auto &[place, gradients] : waiting) {
    std::reverse(gradients.begin(), gradients.end());
    open(place, "in state '" + node.state.getValue() + "'");
  }
  for (auto [bucket, place, handler] : llvm::zip_equal(
           buckets, memories,
           sequence.getHandlers().getAsRange<FlatSymbolRefAttr>())) {
    receiveBucket(node, transition, bucket);
    // The others stay open. A handler that used or released one of them would
    // be wrong.
    waiting[place].pop_back();
    filling.erase(place);
    std::swap(calls->filling, filling);
    runHandler(handler, node.memory);
    std::swap(calls->filling, filling);
    if (!waiting[place].empty())
      open(place, "behind @" + Twine(handler.getValue()));
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
