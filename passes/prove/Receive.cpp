//===- Receive.cpp - The gradients of a backward pass ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

#include "llvm/ADT/SmallBitVector.h"

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
  // Where a bucket's gradients arrive: everywhere, or on some pipeline stages.
  SmallVector<ArrayRef<AxisCoordinate>, 1> places;
  auto placeOf =
      llvm::map_to_vector(llvm::seq(buckets.size()), [&](size_t i) -> size_t {
        ArrayRef<AxisCoordinate> place =
            getGradient(i).op.getValueType().getPresent();
        auto *known = llvm::find(places, place);
        if (known == places.end())
          known = &places.emplace_back(place);
        return known - places.begin();
      });
  // The buckets that may be open when that at |from| is the first: those with
  // less than a window of buckets between that their ranks get gradients of,
  // too. Once a bucket of each place has to wait, all that follow have to.
  auto getMayBeOpen = [&](size_t from) {
    uint64_t everywhere = 0;
    SmallVector<uint64_t, 1> before(places.size());
    llvm::SmallBitVector waits(places.size());
    SmallVector<size_t> open;
    for (size_t i = from; i < buckets.size() && !waits.all(); ++i) {
      size_t place = placeOf[i];
      bool isEverywhere = places[place].empty();
      if (everywhere + before[place] < sequence.getWindow())
        open.push_back(i);
      else
        waits.set(place);
      ++(isEverywhere ? everywhere : before[place]);
    }
    return open;
  };
  for (size_t i : getMayBeOpen(/*from=*/0))
    if (!getGradient(i).allocated)
      proof.report.error(sequence)
          << FlatSymbolRefAttr::get(getGradient(i).op)
          << ", into which gradients may arrive at once, is not allocated in "
             "state '"
          << node.state.getValue() << "'";
  for (auto [i, handler] : llvm::enumerate(
           sequence.getHandlers().getAsRange<FlatSymbolRefAttr>())) {
    receiveBucket(node, transition, buckets[i]);
    for (size_t open : getMayBeOpen(i))
      if (open != i)
        calls->filling.insert(getGradient(open).op.getMemory().getAttr());
    runHandler(handler, node.memory);
    calls->filling.clear();
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
  for (zrt::BucketTableOp op : arrivals)
    receiveBucket(node, transition, op.getBucketAttr());
}
