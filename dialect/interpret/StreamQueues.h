//===- StreamQueues.h - The queues of all ranks -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank has a queue for each stream of the program, and a queue for each
// memory that the caller reads. The caller passes another stream for each
// gradient, for each unit, and for apply. An item starts when the items before
// it in its queue, and the items that it waits for, are done. A collective
// starts when the ranks of its group have all reached it. Changes of a rank's
// state concern calls on the compute stream only, and are items of that stream.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_STREAMQUEUES_H
#define ZERO_DIALECT_INTERPRET_STREAMQUEUES_H

#include "dialect/interpret/Actions.h"
#include "dialect/zrt/MemoryUses.h"

#include "llvm/ADT/BitVector.h"

#include <map>

namespace zero {

class StreamQueues {
public:
  struct Item {
    int64_t rank = 0;
    size_t queue = 0;
    Action action;
    llvm::SmallVector<size_t> after; // items that it waits for
    llvm::SmallVector<zrt::MemoryUse> uses;
    /// The items of the ranks of a collective, this one included; an index.
    std::optional<size_t> meeting;
  };
  /// The items that are done.
  struct Progress {
    std::vector<size_t> heads; // by queue: the number of items that are done
    llvm::BitVector done;      // by item
  };
  /// The ranks that meet a rank in a call; empty if the rank does not run the
  /// call.
  using GetGroup =
      std::function<std::vector<int64_t>(mlir::Operation *call, int64_t rank)>;

  /// Without a schedule the caller is ordered with the calls.
  StreamQueues(const zrt::ProgramSymbols &symbols, bool isScheduled,
               GetGroup getGroup)
      : symbols(symbols), isScheduled(isScheduled),
        getGroup(std::move(getGroup)) {}

  /// Appends the actions of |rank| in one step.
  void add(int64_t rank, llvm::ArrayRef<Action> actions);

  size_t size() const { return items.size(); }
  const Item &getItem(size_t index) const { return items[index]; }
  size_t getNumQueues() const { return queues.size(); }
  /// Nothing for a queue of memory.
  std::optional<zrt::Stream> getStream(size_t queue) const {
    return streams[queue];
  }
  /// The items that must be done before the caller may read the parameters of
  /// |table|.
  llvm::SmallVector<size_t> getWritersOf(int64_t rank,
                                         zrt::BucketTableOp table);

  /// The items before |end| are done, and no others.
  Progress getProgress(size_t end) const;
  /// Makes room in |progress| for items that were added since.
  void extend(Progress &progress) const {
    progress.heads.resize(queues.size());
    progress.done.resize(items.size());
  }
  /// The next item of |queue|, if there is one.
  std::optional<size_t> getNext(const Progress &progress, size_t queue) const;
  /// The item in front of |index| in its queue.
  std::optional<size_t> getPrevious(size_t index) const {
    return previous[index];
  }
  /// The items that start and finish together with |index|, itself included.
  llvm::SmallVector<size_t> getTogether(size_t index) const {
    std::optional<size_t> meeting = items[index].meeting;
    return meeting ? meetings[*meeting].items : llvm::SmallVector{index};
  }
  /// Whether |index|, which is the next item of its queue, can start.
  bool isReady(const Progress &progress, size_t index) const;
  /// Marks |index| and the items of its meeting as done.
  void finish(Progress &progress, size_t index) const;

private:
  /// A stream of the program, the stream that the caller passes with a
  /// parameter or unit (null: to apply), or else memory that the caller reads.
  using QueueName = std::pair<std::optional<zrt::Stream>, const void *>;

  size_t getQueue(int64_t rank, QueueName name);
  size_t getQueue(int64_t rank, zrt::Stream stream) {
    return getQueue(rank, {stream, nullptr});
  }
  size_t getQueue(int64_t rank, zrt::Stream stream, const Action &action);
  size_t getCallerQueue(int64_t rank, const PlacedParameter *parameter) {
    return isScheduled ? getQueue(rank, {zrt::Stream::caller, parameter})
                       : getQueue(rank, zrt::Stream::compute);
  }
  size_t append(int64_t rank, size_t queue, Action action,
                llvm::ArrayRef<size_t> after = {},
                llvm::ArrayRef<zrt::MemoryUse> uses = {});
  void addCall(int64_t rank, const Action &action);
  void addLend(int64_t rank, const Action &action);
  void addRead(int64_t rank, const Action &action);
  void addReadOfUnit(int64_t rank, const Action &action);
  void meet(size_t index, std::vector<int64_t> group);
  llvm::SmallVector<size_t> getRecorded(int64_t rank, mlir::ArrayAttr events);

  const zrt::ProgramSymbols &symbols;
  bool isScheduled;
  GetGroup getGroup;
  std::vector<Item> items;
  std::vector<std::optional<size_t>> previous;
  std::vector<std::vector<size_t>> queues;
  std::vector<std::optional<zrt::Stream>> streams; // by queue
  std::map<std::pair<int64_t, QueueName>, size_t> queueOf;
  /// A collective of some ranks, and the items of the ranks that have reached
  /// it.
  struct Meeting {
    size_t numRanks = 0;
    llvm::SmallVector<size_t> items;
  };
  std::vector<Meeting> meetings;
  /// The collectives of a group on a stream, and how many each rank reached.
  struct Channel {
    std::vector<size_t> meetings;
    std::map<int64_t, size_t> reached;
  };
  std::map<std::pair<std::vector<int64_t>, zrt::Stream>, Channel> channels;
  /// The last record of each event on each rank.
  llvm::DenseMap<std::pair<int64_t, mlir::StringAttr>, size_t> records;
  /// The items in which the caller of each rank reads parameters.
  std::map<int64_t, llvm::SmallVector<size_t>> reads;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_STREAMQUEUES_H
