//===- rendezvous.h - Where the threads of a group meet ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `enter` is the only place where a rank waits for another that may never come,
// so it is the only one with a timeout, and it compares tags. Once all have
// entered, each only moves memory until it leaves; `sync` between those phases
// therefore needs no timeout. It must not have one either: a rank that gave up
// would return to a caller who may free memory that others still read.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_LOCAL_RENDEZVOUS_H
#define ZERO_RT_COMM_LOCAL_RENDEZVOUS_H

#include "comm/communicator.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zero_rt {

class Rendezvous {
public:
  /// |names| are the ranks' numbers for messages, |owner| what a rank destroys
  /// when it leaves: "runtime" or "step".
  Rendezvous(std::vector<int32_t> names, const char *owner);

  zero_rt_status join(int32_t rank);
  /// Waits until the others have seen what |rank| showed them last.
  void leave(int32_t rank);
  void leaveStep(int32_t rank, uint64_t step);
  /// Whether |rank| has destroyed |step|.
  bool hasLeft(int32_t rank, uint64_t step);
  int32_t members();
  /// Whether all ranks have come and gone.
  bool isDeserted();

  /// Waits until all ranks are in a collective with the same tag. |data|, and
  /// the |signal| that it is there, are shown to the others until the last
  /// `sync` of this collective.
  zero_rt_status enter(int32_t rank, const Tag &tag, const void *data,
                       Signal signal, int64_t timeoutMs);
  /// Waits until all ranks have begun, or done, the phase before, and shows
  /// |signal| that it is done to the others until the next sync. Where |status|
  /// says that a rank failed, all do.
  zero_rt_status sync(int32_t rank, Signal signal, zero_rt_status status);

  /// |rank| needs nothing more of what the others showed in the last sync, such
  /// as signals, which go with the device of a rank that leaves.
  void declareSeen(int32_t rank);

  /// What |rank| entered the present collective with.
  const void *dataOf(int32_t rank) const { return posts[size_t(rank)].data; }
  /// What |rank| entered it with, and came to the last sync with.
  Signal entrySignalOf(int32_t rank) const {
    return posts[size_t(rank)].entrySignal;
  }
  Signal signalOf(int32_t rank) const {
    return posts[size_t(rank)].signals[(syncNumber + 1) % 2];
  }
  /// How many collectives |rank| has entered.
  uint64_t sequenceOf(int32_t rank) const {
    return posts[size_t(rank)].sequence;
  }
  int32_t size() const { return int32_t(posts.size()); }

private:
  enum class Member { Absent, Present, Left };

  struct Post {
    Member member = Member::Absent;
    bool waiting = false; // entered, and others are still to come
    bool told = false;    // knows why the group is broken
    Tag tag = {};
    const void *data = nullptr;
    Signal entrySignal = nullptr;
    // Of the last sync and of the next one, to which others may have come.
    Signal signals[2] = {};
    uint64_t sequence = 0;
    uint64_t seen = 0; // syncs
  };

  // All of these expect the mutex to be held.
  void breakWith(zero_rt_status code, std::string message);
  zero_rt_status reportBroken(int32_t rank, bool waited);
  void breakIfAnyoneLeft(int32_t rank);
  void breakIfTagsDiffer(int32_t rank);
  std::vector<int32_t> missingRanks() const;
  bool hasEnded(int32_t rank, uint64_t step) const;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int32_t> names;
  const char *owner;
  std::vector<Post> posts;
  int32_t entered = 0;     // ranks waiting in `enter`
  uint64_t generation = 0; // of `enter`
  int32_t synced = 0;      // ranks waiting in `sync`
  uint64_t syncNumber = 0;
  int32_t leaving = 0;              // ranks waiting in `leave`
  uint64_t failedSync = UINT64_MAX; // in which a rank said that it failed
  /// (step, rank): the rank destroyed the step while others still have it.
  std::vector<std::pair<uint64_t, int32_t>> ended;
  zero_rt_status brokenCode = ZERO_RT_OK;
  std::string brokenBy;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_LOCAL_RENDEZVOUS_H
