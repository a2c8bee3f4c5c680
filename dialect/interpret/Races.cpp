//===- Races.cpp - Which items no queue and no wait orders ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Races.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace zero;

/// The items that must be done before each item starts, counted from |begin|;
/// nothing if queues wait for each other.
static std::optional<std::vector<llvm::BitVector>>
getBefore(const StreamQueues &queues, size_t begin) {
  size_t count = queues.size() - begin;
  std::vector<llvm::BitVector> before(count, llvm::BitVector(count));
  StreamQueues::Progress progress = queues.getProgress(begin);
  auto finish = [&](size_t index) {
    SmallVector<size_t> together = queues.getTogether(index);
    llvm::BitVector all(count);
    auto add = [&](size_t i) {
      if (i < begin)
        return;
      all |= before[i - begin];
      for (size_t other : queues.getTogether(i))
        all.set(other - begin);
    };
    for (size_t i : together) {
      if (auto previous = queues.getPrevious(i))
        add(*previous);
      for (size_t waited : queues.getItem(i).after)
        add(waited);
    }
    for (size_t i : together)
      before[i - begin] = all;
    queues.finish(progress, index);
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t queue = 0; queue < queues.getNumQueues(); ++queue)
      for (auto next = queues.getNext(progress, queue);
           next && queues.isReady(progress, *next);
           next = queues.getNext(progress, queue)) {
        finish(*next);
        moves = true;
      }
  }
  if (!progress.done.all())
    return std::nullopt;
  return before;
}

/// The gradient that is all that |item| touches; null if there is none.
static const PlacedParameter *getGradient(const StreamQueues::Item &item) {
  const Action &action = item.action;
  bool isOfOne = action.kind == Action::Kind::lend ||
                 action.kind == Action::Kind::write ||
                 isa_and_present<zrt::PackOp>(action.call);
  return isOfOne ? action.parameter : nullptr;
}

bool zero::touchOtherGradients(const StreamQueues::Item &a,
                               const StreamQueues::Item &b) {
  const PlacedParameter *one = getGradient(a), *other = getGradient(b);
  return one && other && one != other;
}

std::optional<Race> zero::findRace(const StreamQueues &queues, size_t begin) {
  struct Use {
    size_t item;
    bool writes;
  };
  std::optional<std::vector<llvm::BitVector>> found = getBefore(queues, begin);
  if (!found)
    return std::nullopt;
  const std::vector<llvm::BitVector> &before = *found;
  llvm::MapVector<std::pair<int64_t, StringAttr>, SmallVector<Use>> all;
  for (size_t i = begin; i < queues.size(); ++i) {
    const StreamQueues::Item &item = queues.getItem(i);
    for (const zrt::MemoryUse &use : item.uses) {
      SmallVector<Use> &uses = all[{item.rank, use.memory}];
      for (const Use &other : uses) {
        if (other.item == i || (!other.writes && !use.writes) ||
            touchOtherGradients(item, queues.getItem(other.item)) ||
            before[i - begin][other.item - begin] ||
            before[other.item - begin][i - begin])
          continue;
        Race race{other.item, i, use, other.writes,
                  llvm::BitVector(queues.size())};
        race.before.set(0, begin);
        for (size_t item : {i, other.item})
          for (unsigned b : before[item - begin].set_bits())
            race.before.set(begin + b);
        return race;
      }
      uses.push_back({i, use.writes});
    }
  }
  return std::nullopt;
}
