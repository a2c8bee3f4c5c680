//===- Receive.cpp - The gradients of a backward --------------------------===//
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
      program.lookupSymbol<zrt::SequenceOp>(transition.getSequenceAttr());
  auto buckets =
      llvm::to_vector(sequence.getBuckets().getAsRange<FlatSymbolRefAttr>());
  auto getGradient = [&](size_t i) -> Contents & {
    return node.memory.get(calls->getArrivals(buckets[i]).getGradientAttr());
  };
  auto getStages = [&](size_t i) {
    return getGradient(i).op.getValueType().getPresent();
  };
  // Of the buckets before it count those that are wherever it is.
  auto mayBeOpen = [&](size_t i, size_t from) {
    auto before = llvm::count_if(llvm::seq(from, i), [&](size_t other) {
      return getStages(other).empty() || getStages(other) == getStages(i);
    });
    return static_cast<uint64_t>(before) < sequence.getWindow();
  };
  for (size_t i = 0; i < buckets.size(); ++i)
    if (mayBeOpen(i, /*from=*/0) && !getGradient(i).allocated)
      proof.report.error(sequence)
          << FlatSymbolRefAttr::get(getGradient(i).op)
          << ", into which gradients may arrive at once, is not allocated in "
             "state '"
          << node.state.getValue() << "'";
  for (auto [i, handler] : llvm::enumerate(
           sequence.getHandlers().getAsRange<FlatSymbolRefAttr>())) {
    receiveBucket(node, transition, buckets[i]);
    for (size_t open = i + 1; open < buckets.size(); ++open)
      if (mayBeOpen(open, i))
        calls->filling.insert(getGradient(open).op.getMemory().getAttr());
    runHandler(handler, node.memory);
    calls->filling.clear();
  }
}

/// All gradients of the open backward arrive, or do not: that is in the pieces.
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
         program.lookupSymbol<zrt::HandlerOp>(symbol).getBody().front()) {
      if (!isa<zrt::PackOp>(call)) {
        proof.report.error(&call)
            << "runs once per arriving gradient, in an order that differs by "
               "rank"
            << (zrt::isCollective(&call) ? ": ranks would wait for each other"
                                         : "");
        return;
      }
      ++packs;
    }
  if (packs != 1) {
    proof.report.error(transition)
        << "packs an arriving gradient " << packs << " times, expected once";
    return;
  }
  calls->inBackward = true;
  if (transition.getSequenceAttr())
    return receiveInOrder(node, transition);
  for (zrt::ArrivalsOp op : arrivals)
    receiveBucket(node, transition, op.getBucketAttr());
}
