//===- StreamQueues.cpp - The queues of all ranks -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/StreamQueues.h"

using namespace mlir;
using namespace zero;
using zrt::Stream;

//===----------------------------------------------------------------------===//
// From actions to items
//===----------------------------------------------------------------------===//

size_t StreamQueues::getQueue(int64_t rank, QueueName name) {
  auto [it, isNew] = queueOf.try_emplace({rank, name}, queues.size());
  if (isNew) {
    queues.emplace_back();
    streams.push_back(name.first);
  }
  return it->second;
}

size_t StreamQueues::append(int64_t rank, size_t queue, Action action,
                            ArrayRef<size_t> after,
                            ArrayRef<zrt::MemoryUse> uses) {
  size_t index = items.size();
  items.push_back({rank, queue, std::move(action),
                   SmallVector<size_t>(after), //
                   SmallVector<zrt::MemoryUse>(uses), std::nullopt});
  previous.push_back(queues[queue].empty()
                         ? std::nullopt
                         : std::optional(queues[queue].back()));
  queues[queue].push_back(index);
  return index;
}

SmallVector<size_t> StreamQueues::getRecorded(int64_t rank, ArrayAttr events) {
  SmallVector<size_t> recorded;
  if (events)
    for (auto event : events.getAsRange<FlatSymbolRefAttr>())
      if (auto it = records.find({rank, event.getAttr()}); it != records.end())
        recorded.push_back(it->second);
  return recorded;
}

void StreamQueues::meet(size_t index, std::vector<int64_t> group) {
  Item &item = items[index];
  auto call = cast<zrt::RuntimeCall>(item.action.call);
  size_t numRanks = group.size();
  Channel &channel = channels[{std::move(group), call.getStream()}];
  size_t position = channel.reached[item.rank]++;
  if (position == channel.meetings.size()) {
    channel.meetings.push_back(meetings.size());
    meetings.push_back({numRanks, {}});
  }
  item.meeting = channel.meetings[position];
  meetings[*item.meeting].items.push_back(index);
}

size_t StreamQueues::getQueue(int64_t rank, Stream stream,
                              const Action &action) {
  if (stream != Stream::caller)
    return getQueue(rank, stream);
  return action.unit && isScheduled
             ? getQueue(rank, {stream, action.unit.getAsOpaquePointer()})
             : getCallerQueue(rank, action.parameter);
}

void StreamQueues::addCall(int64_t rank, const Action &action) {
  size_t compute = getQueue(rank, Stream::compute);
  if (auto record = dyn_cast<zrt::RecordOp>(action.call)) {
    auto event = symbols.lookup<zrt::EventOp>(record.getEventAttr());
    records[{rank, event.getSymNameAttr()}] =
        append(rank, getQueue(rank, event.getStream(), action), action);
    return;
  }
  if (auto wait = dyn_cast<zrt::WaitOp>(action.call)) {
    auto it = records.find({rank, wait.getEventAttr().getAttr()});
    if (it != records.end())
      append(rank, getQueue(rank, wait.getStream(), action), action,
             it->second);
    return;
  }
  zrt::BucketTableOp table =
      action.parameter ? action.parameter->table : zrt::BucketTableOp();
  if (isa<zrt::WaitWritableOp>(action.call)) {
    append(rank, compute, action,
           getRecorded(rank, table ? table.getWritableAttr() : nullptr));
    return;
  }
  std::vector<int64_t> group = getGroup(action.call, rank);
  if (group.empty())
    return;
  auto call = cast<zrt::RuntimeCall>(action.call);
  size_t index =
      append(rank, getQueue(rank, call.getStream()), action, {},
             symbols.getUses(call, table ? table.getBucketAttr() : nullptr));
  if (isa<zrt::Collective>(action.call))
    meet(index, std::move(group));
}

void StreamQueues::addLend(int64_t rank, const Action &action) {
  zrt::BucketTableOp table = action.parameter->table;
  size_t lends = append(rank, getQueue(rank, Stream::compute), action,
                        getRecorded(rank, table.getWritableAttr()));
  append(rank, getCallerQueue(rank, action.parameter), action, lends,
         zrt::MemoryUse{symbols.getMemory(table.getGradientAttr()),
                        /*writes=*/true});
}

SmallVector<size_t> StreamQueues::getWritersOf(int64_t rank,
                                               zrt::BucketTableOp table) {
  SmallVector<size_t> writers = getRecorded(rank, table.getReadableAttr());
  // Otherwise the compute stream writes the parameters, or no step has written
  // them yet.
  if (const auto &compute = queues[getQueue(rank, Stream::compute)];
      writers.empty() && !compute.empty())
    writers.push_back(compute.back());
  return writers;
}

void StreamQueues::addRead(int64_t rank, const Action &action) {
  zrt::BucketTableOp table = action.parameter->table;
  StringAttr memory = symbols.getMemory(table.getParametersAttr());
  size_t queue = getQueue(rank, {std::nullopt, memory.getAsOpaquePointer()});
  reads[rank].push_back(append(rank, queue, action, getWritersOf(rank, table),
                               zrt::MemoryUse{memory, /*writes=*/false}));
}

void StreamQueues::addReadOfUnit(int64_t rank, const Action &action) {
  SmallVector<zrt::MemoryUse> uses;
  for (const zrt::UnitPart &part : symbols.getPartsOf(action.unit))
    symbols.addUse(part.unsharded, /*writes=*/false, uses);
  append(rank, getQueue(rank, Stream::caller, action), action, {}, uses);
}

void StreamQueues::add(int64_t rank, ArrayRef<Action> actions) {
  size_t compute = getQueue(rank, Stream::compute);
  for (const Action &action : actions) {
    switch (action.kind) {
    case Action::Kind::call:
      addCall(rank, action);
      break;
    case Action::Kind::note:
      append(rank, compute, action);
      break;
    case Action::Kind::poison: // races show without
      break;
    case Action::Kind::lend:
      addLend(rank, action);
      break;
    case Action::Kind::write:
      append(rank, getCallerQueue(rank, action.parameter), action, {},
             zrt::MemoryUse{symbols.getArrivingGradient(), /*writes=*/true});
      break;
    case Action::Kind::apply:
      append(rank, getCallerQueue(rank, nullptr), action,
             std::exchange(reads[rank], {}));
      break;
    case Action::Kind::read:
      addRead(rank, action);
      break;
    case Action::Kind::readUnit:
      addReadOfUnit(rank, action);
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

StreamQueues::Progress StreamQueues::getProgress(size_t end) const {
  Progress progress;
  progress.done.resize(items.size());
  progress.done.set(0, end);
  for (const std::vector<size_t> &queue : queues)
    progress.heads.push_back(
        llvm::partition_point(queue, [&](size_t i) { return i < end; }) -
        queue.begin());
  return progress;
}

std::optional<size_t> StreamQueues::getNext(const Progress &progress,
                                            size_t queue) const {
  if (progress.heads[queue] == queues[queue].size())
    return std::nullopt;
  return queues[queue][progress.heads[queue]];
}

bool StreamQueues::isReady(const Progress &progress, size_t index) const {
  const Item &item = items[index];
  if (!llvm::all_of(item.after, [&](size_t i) { return progress.done[i]; }))
    return false;
  if (!item.meeting)
    return true;
  const Meeting &meeting = meetings[*item.meeting];
  return meeting.items.size() == meeting.numRanks &&
         llvm::all_of(meeting.items, [&](size_t i) {
           return getNext(progress, items[i].queue) == i;
         });
}

void StreamQueues::finish(Progress &progress, size_t index) const {
  for (size_t together : getTogether(index)) {
    progress.done.set(together);
    ++progress.heads[items[together].queue];
  }
}
