//===- StreamOrder.cpp - Runs a program in an order of streams ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/StreamOrder.h"

using namespace mlir;
using namespace zero;
using zrt::Stream;

ProgramInterpreter::StreamOrder::StreamOrder(ProgramInterpreter &owner,
                                             uint64_t seed)
    : owner(owner), seed(seed), random(seed),
      queues(owner.program.getSymbols(), owner.program.getOp().isScheduled(),
             [&owner](Operation *call, int64_t rank) {
               return owner.getGroupOf(call, rank);
             }) {
  if (random() % 2)
    late = static_cast<Stream>(random() % (zrt::getMaxEnumValForStream() + 1));
}

//===----------------------------------------------------------------------===//
// One item
//===----------------------------------------------------------------------===//

static std::string describe(const StreamQueues::Item &item) {
  Operation *call = item.action.call;
  return call ? ("'" + call->getName().getStringRef() + "'").str()
              : "the caller";
}

LogicalResult
ProgramInterpreter::StreamOrder::reportRace(const Item &item, const Item &other,
                                            const zrt::MemoryUse &use,
                                            bool otherWrites) {
  auto verb = [](bool writes) { return writes ? "writes" : "reads"; };
  Operation *at = item.action.call;
  InFlightDiagnostic diagnostic =
      at ? at->emitOpError() : owner.program.getOp().emitOpError("the caller ");
  diagnostic << verb(use.writes) << " " << zrt::describeMemory(use.memory)
             << " on rank " << item.rank << " while " << describe(other) << " "
             << verb(otherWrites) << " it, in a legal order of streams";
  if (Operation *earlier = other.action.call)
    diagnostic.attachNote(earlier->getLoc()) << "which is here";
  return diagnostic;
}

LogicalResult ProgramInterpreter::StreamOrder::start(size_t index) {
  const Item &item = queues.getItem(index);
  for (size_t running : started) {
    const Item &other = queues.getItem(running);
    if (other.rank != item.rank || touchOtherGradients(item, other))
      continue;
    for (const zrt::MemoryUse &use : item.uses)
      for (const zrt::MemoryUse &theirs : other.uses)
        if (use.memory == theirs.memory && (use.writes || theirs.writes))
          return reportRace(item, other, use, theirs.writes);
  }
  started.insert(index);
  return success();
}

LogicalResult ProgramInterpreter::StreamOrder::finish(size_t index) {
  const Item &item = queues.getItem(index);
  SmallVector<int64_t> group;
  for (size_t together : queues.getTogether(index))
    group.push_back(queues.getItem(together).rank);
  llvm::sort(group);
  if (item.action.note)
    item.action.note();
  else if (isa_and_present<zrt::Collective>(item.action.call)) {
    if (failed(owner.runCollective(item.action.call, group)))
      return failure();
  } else if (item.action.call && failed(owner.run(item.action, item.rank)))
    return failure();
  if (item.action.call && item.action.unit)
    owner.keepGathered(item.action, group);
  for (size_t together : queues.getTogether(index))
    started.erase(together);
  queues.finish(progress, index);
  return success();
}

LogicalResult ProgramInterpreter::StreamOrder::move(size_t index) {
  if (started.contains(index))
    return finish(index);
  for (size_t together : queues.getTogether(index))
    if (failed(start(together)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

std::vector<size_t>
ProgramInterpreter::StreamOrder::getMoves(const llvm::BitVector *among) {
  std::vector<size_t> moves, held;
  for (size_t queue = 0; queue < queues.getNumQueues(); ++queue) {
    std::optional<size_t> next = queues.getNext(progress, queue);
    if (!next || (among && !among->test(*next)) ||
        !queues.isReady(progress, *next))
      continue;
    bool isHeld = late && queues.getStream(queue) == late;
    (isHeld ? held : moves).push_back(*next);
  }
  return moves.empty() ? held : moves;
}

LogicalResult
ProgramInterpreter::StreamOrder::runUntil(SmallVector<size_t> goal) {
  while (!goal.empty()) {
    if (progress.done[goal.back()]) {
      goal.pop_back();
      continue;
    }
    std::vector<size_t> moves = getMoves();
    if (moves.empty())
      return owner.program.getOp().emitError()
             << "every stream waits forever in the order of streams of seed "
             << seed;
    if (failed(move(moves[random() % moves.size()])))
      return failure();
  }
  return success();
}

LogicalResult ProgramInterpreter::StreamOrder::runRace(const Race &race) {
  for (std::vector<size_t> moves = getMoves(&race.before); !moves.empty();
       moves = getMoves(&race.before))
    if (failed(move(moves.front())))
      return failure();
  for (size_t index : {race.first, race.second})
    if (!progress.done[index] && !started.contains(index) &&
        failed(move(index)))
      return failure();
  // The drawn order has already run one of them.
  return reportRace(queues.getItem(race.second), queues.getItem(race.first),
                    race.use, race.firstWrites);
}

LogicalResult ProgramInterpreter::StreamOrder::run(ArrayRef<Actions> plans) {
  size_t previousStep = std::exchange(lastStep, queues.size());
  for (auto [rank, actions] : llvm::enumerate(plans))
    queues.add(rank, actions);
  queues.extend(progress);
  if (failed(finishBefore(previousStep)))
    return failure();
  if (auto race = findRace(queues, previousStep))
    return runRace(*race);
  // All items that need inputs are on the compute stream.
  SmallVector<size_t> goal;
  for (size_t i = lastStep; i < queues.size(); ++i)
    if (queues.getStream(queues.getItem(i).queue) == Stream::compute)
      goal.push_back(i);
  return runUntil(std::move(goal));
}

LogicalResult
ProgramInterpreter::StreamOrder::waitForParameters(int64_t rank,
                                                   zrt::BucketTableOp table) {
  return runUntil(queues.getWritersOf(rank, table));
}

LogicalResult ProgramInterpreter::StreamOrder::finishBefore(size_t end) {
  SmallVector<size_t> goal;
  for (; numFinished < end; ++numFinished)
    goal.push_back(numFinished);
  return runUntil(std::move(goal));
}
