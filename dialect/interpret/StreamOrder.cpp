//===- StreamOrder.cpp - Runs a zrt.program in an order of streams --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank has one queue per stream. A call starts and finishes, and calls of
// other streams may start and finish in between. A call computes at its finish.
// What the host does between two calls concerns calls on compute only, and is
// queued there.
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ProgramInterpreter.h"
#include "dialect/zrt/MemoryUses.h"

#include <random>

using namespace mlir;
using namespace zero;
using zrt::Stream;

static constexpr unsigned kNumStreams = zrt::getMaxEnumValForStream() + 1;

class ProgramInterpreter::StreamOrder {
public:
  explicit StreamOrder(ProgramInterpreter &owner)
      : owner(owner), symbols(owner.program.getOp()), random(owner.order),
        queues(owner.plans.size()), done(owner.plans.size()) {
    // Every second order holds one stream back as long as another can move.
    if (owner.order % 2 == 0)
      late = owner.order / 2 % kNumStreams;
  }

  LogicalResult run();

private:
  using Records = llvm::DenseMap<StringAttr, size_t>;
  struct Item {
    const Action *action = nullptr;
    size_t index = 0; // in the rank's plan
    Records records;  // of a wait: the records that were queued before
  };
  struct Queue {
    std::vector<Item> items;
    size_t head = 0;
    SmallVector<zrt::MemoryUse> uses; // of the call that has started
    bool started = false;

    Item *front() { return head < items.size() ? &items[head] : nullptr; }
  };
  struct Move {
    size_t rank;
    unsigned stream;
  };

  void enqueue(size_t rank);
  bool hasPassed(size_t rank, const Item &wait, StringAttr event) {
    auto it = wait.records.find(event);
    return it == wait.records.end() || done[rank][it->second];
  }
  bool isReady(size_t rank, unsigned stream);
  LogicalResult start(size_t rank, unsigned stream);
  LogicalResult finish(size_t rank, unsigned stream);
  LogicalResult step(Move move);
  void pop(size_t rank, Queue &queue) {
    done[rank][queue.front()->index] = true;
    queue.started = false;
    queue.uses.clear();
    ++queue.head;
  }
  zrt::BucketTableOp getArriving(size_t rank) {
    const Parameter *parameter = owner.states[rank].arriving;
    return parameter ? parameter->arrivals : nullptr;
  }

  ProgramInterpreter &owner;
  zrt::ProgramSymbols symbols;
  std::mt19937_64 random;
  std::vector<std::array<Queue, kNumStreams>> queues; // by rank
  std::vector<std::vector<bool>> done;                // by rank
  std::optional<unsigned> late;
};

void ProgramInterpreter::StreamOrder::enqueue(size_t rank) {
  Records records;
  done[rank].resize(owner.plans[rank].size());
  for (auto [i, action] : llvm::enumerate(owner.plans[rank])) {
    if (action.poisons)
      continue;
    Item item{&action, i, Records()};
    Stream stream = Stream::compute;
    if (auto record = dyn_cast_if_present<zrt::RecordOp>(action.call)) {
      stream = symbols.lookup<zrt::EventOp>(record.getEventAttr()).getStream();
      records[record.getEventAttr().getAttr()] = i;
    } else if (auto wait = dyn_cast_if_present<zrt::WaitOp>(action.call)) {
      stream = wait.getStream();
      item.records = records;
    } else if (action.call) {
      stream = cast<zrt::RuntimeCall>(action.call).getStream();
      if (isa<zrt::WaitWritableOp>(action.call))
        item.records = records;
    }
    queues[rank][static_cast<unsigned>(stream)].items.push_back(
        std::move(item));
  }
}

bool ProgramInterpreter::StreamOrder::isReady(size_t rank, unsigned stream) {
  Item *item = queues[rank][stream].front();
  if (!item)
    return false;
  Operation *call = item->action->call;
  if (!call || queues[rank][stream].started)
    return true;
  if (auto wait = dyn_cast<zrt::WaitOp>(call))
    return hasPassed(rank, *item, wait.getEventAttr().getAttr());
  if (isa<zrt::WaitWritableOp>(call)) {
    zrt::BucketTableOp table = getArriving(rank);
    ArrayAttr events = table ? table.getWritableAttr() : nullptr;
    return !events ||
           llvm::all_of(events.getAsRange<FlatSymbolRefAttr>(),
                        [&](FlatSymbolRefAttr event) {
                          return hasPassed(rank, *item, event.getAttr());
                        });
  }
  if (!zrt::isCollective(call))
    return true;
  // All ranks meet.
  return llvm::all_of(queues, [&](auto &other) {
    Item *theirs = other[stream].front();
    return theirs && isSameCollective(theirs->action->call, call);
  });
}

LogicalResult ProgramInterpreter::StreamOrder::start(size_t rank,
                                                     unsigned stream) {
  Queue &queue = queues[rank][stream];
  queue.started = true;
  auto call =
      dyn_cast_if_present<zrt::RuntimeCall>(queue.front()->action->call);
  if (!call || !owner.isOn(call, rank))
    return success();
  zrt::BucketTableOp arriving = getArriving(rank);
  call.getMemoryUses(symbols, arriving ? arriving.getBucketAttr() : nullptr,
                     queue.uses);
  for (Queue &other : queues[rank])
    for (const zrt::MemoryUse &theirs : other.uses)
      for (const zrt::MemoryUse &use : queue.uses)
        if (&other != &queue && use.memory == theirs.memory &&
            (use.writes || theirs.writes)) {
          Operation *earlier = other.front()->action->call;
          return call.emitOpError()
                 << (use.writes ? "writes" : "reads") << " @"
                 << use.memory.getValue() << " on rank " << rank << " while '"
                 << earlier->getName().getStringRef() << "' "
                 << (theirs.writes ? "writes" : "reads")
                 << " it, in the order of streams of seed " << owner.order;
        }
  return success();
}

LogicalResult ProgramInterpreter::StreamOrder::finish(size_t rank,
                                                      unsigned stream) {
  Queue &queue = queues[rank][stream];
  const Action *action = queue.front()->action;
  if (action->call && zrt::isCollective(action->call)) {
    if (failed(owner.runCollective(action->call)))
      return failure();
    for (size_t other = 0; other < queues.size(); ++other)
      pop(other, queues[other][stream]);
    return success();
  }
  if (!action->call)
    action->note();
  else if (failed(owner.run(action->call, rank)))
    return failure();
  pop(rank, queue);
  return success();
}

LogicalResult ProgramInterpreter::StreamOrder::step(Move move) {
  Queue &queue = queues[move.rank][move.stream];
  if (queue.started)
    return finish(move.rank, move.stream);
  Operation *call = queue.front()->action->call;
  if (!call || !zrt::isCollective(call))
    return start(move.rank, move.stream);
  for (size_t rank = 0; rank < queues.size(); ++rank)
    if (failed(start(rank, move.stream)))
      return failure();
  return success();
}

LogicalResult ProgramInterpreter::StreamOrder::run() {
  for (size_t rank = 0; rank < queues.size(); ++rank)
    enqueue(rank);
  while (true) {
    SmallVector<Move> moves, held;
    bool isEmpty = true;
    for (size_t rank = 0; rank < queues.size(); ++rank)
      for (unsigned stream = 0; stream < kNumStreams; ++stream) {
        isEmpty &= !queues[rank][stream].front();
        if (isReady(rank, stream))
          (late == stream ? held : moves).push_back({rank, stream});
      }
    if (isEmpty)
      return success();
    ArrayRef<Move> choice = moves.empty() ? held : moves;
    if (choice.empty())
      return owner.program.getOp().emitError()
             << "every stream waits forever in the order of streams of seed "
             << owner.order;
    if (failed(step(choice[random() % choice.size()])))
      return failure();
  }
}

LogicalResult ProgramInterpreter::runInStreams() {
  return StreamOrder(*this).run();
}
