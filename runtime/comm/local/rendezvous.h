//===- rendezvous.h - Where the threads of a group meet ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `enter` is the only function in which a rank waits for a rank that may never
// come. So only `enter` has a timeout, and it compares tags. After `enter` each
// rank only moves memory until it leaves, so `sync`, which separates the
// phases, needs no timeout. It must not have one: a rank that gave up would
// return to its caller, who may free memory that other ranks still read.
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
  /// |names| are the numbers of the ranks for messages. |owner| is the object
  /// that a rank destroys when it leaves: "runtime" or "step".
  Rendezvous(std::vector<int32_t> names, const char *owner);

  /// A rank that has left may join again, as the first or the last rank that
  /// does: one that has joined less often has not left yet.
  zero_rt_status join(int32_t rank);
  /// Waits until the other ranks have seen the last signals of |rank|.
  void leave(int32_t rank);
  void leaveStep(int32_t rank, uint64_t step);
  /// Whether |rank| has destroyed |step|.
  bool hasLeft(int32_t rank, uint64_t step);
  int32_t members();
  /// Whether all ranks have joined and left.
  bool isDeserted();

  /// Waits until all ranks are in a collective with the same tag. Shows |data|,
  /// and |signal| for the work that writes it, to the other ranks until the
  /// last `sync` of this collective.
  zero_rt_status enter(int32_t rank, const Tag &tag, const void *data,
                       Signal signal, int64_t timeoutMs);
  /// Waits until all ranks have queued the work of the phase. Shows |signal|,
  /// which is for this work, to the other ranks until the next sync. If the
  /// |status| of a rank is an error, sync fails on all ranks.
  zero_rt_status sync(int32_t rank, Signal signal, zero_rt_status status);

  /// Declares that |rank| has used the signals of the last sync. Signals are
  /// destroyed with the device of a rank that leaves.
  void declareSeen(int32_t rank);

  /// The data of |rank| in the present collective.
  const void *dataOf(int32_t rank) const { return posts[size_t(rank)].data; }
  /// The signals of |rank|: at `enter`, and at the last sync.
  Signal entrySignalOf(int32_t rank) const {
    return posts[size_t(rank)].entrySignal;
  }
  Signal signalOf(int32_t rank) const {
    return posts[size_t(rank)].signals[(syncNumber + 1) % 2];
  }
  /// The number of collectives that |rank| has entered.
  uint64_t sequenceOf(int32_t rank) const {
    return posts[size_t(rank)].sequence;
  }
  int32_t size() const { return int32_t(posts.size()); }

private:
  enum class Member { Absent, Present, Left };

  struct Post {
    Member member = Member::Absent;
    int64_t joins = 0;    // the same on all ranks once they have met
    bool waiting = false; // in `enter`, for other ranks
    bool told = false;    // has got the error that broke the group
    Tag tag = {};
    const void *data = nullptr;
    Signal entrySignal = nullptr;
    // Of the last sync, and of the next one, to which other ranks may have
    // come.
    Signal signals[2] = {};
    uint64_t sequence = 0;
    uint64_t seen = 0; // the number of syncs that the rank has seen
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
  uint64_t failedSync = UINT64_MAX; // the sync in which a rank failed
  /// (step, rank): the rank destroyed the step while others still have it.
  std::vector<std::pair<uint64_t, int32_t>> ended;
  zero_rt_status brokenCode = ZERO_RT_OK;
  std::string brokenBy;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_LOCAL_RENDEZVOUS_H
