//===- desync_check.h - Compares queued collectives -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks do not meet for queued collectives. Instead each rank tells the next
// rank of its process group which collectives it queues, and compares the
// collectives that the previous rank tells it. So some rank finds each
// difference, although later than in a meeting. A rank that waits for long asks
// which ranks are in its collective.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_DESYNC_CHECK_H
#define ZERO_RT_COMM_PROCESS_DESYNC_CHECK_H

#include "comm/process/collective_tag.h"
#include "comm/process/control_messages.h"

#include <deque>

namespace zero_rt {

/// The check of all process groups of a link. A process group has a number
/// that its ranks agree on and that no other process group has. Lives as long
/// as the link.
class DesyncCheck {
public:
  explicit DesyncCheck(ControlMessages &control);

  void join(uint64_t group, std::vector<int32_t> members);
  /// Declares that this rank queues no more collectives of |step| in |group|.
  /// The queued ones will be done.
  void leaveStep(uint64_t group, uint64_t step);
  /// Forgets |group|.
  void leave(uint64_t group);

  /// This rank queues |named|, the next collective of its process group. Sets
  /// its number, from 1 on.
  zero_rt_status call(NamedTag &named);
  /// Tells the other ranks that this rank is in collective |number|, and asks
  /// which of them are.
  zero_rt_status announce(uint64_t group, uint64_t number);

  /// Reads the messages of other ranks. Errors: mismatch (a rank queued another
  /// collective).
  zero_rt_status look();
  /// The members that are not known to be in collective |number|.
  std::vector<int32_t> findMissing(uint64_t group, uint64_t number) const;
  /// Whether the process of |rank| is known to be gone.
  bool isGone(int32_t rank) const;
  /// The reason why |member| will not come to collective |number| of |step|;
  /// null if none is known.
  const char *findLoss(uint64_t group, uint64_t step, int32_t member,
                       uint64_t number) const;

private:
  struct Member {
    uint64_t came = 0;  // the last collective that it is known to be in
    uint64_t asked = 0; // the collective that it asks about; 0: none
    std::set<uint64_t> leftSteps;
  };
  struct Group {
    std::vector<int32_t> members; // empty: not joined yet
    uint64_t calls = 0;
    std::deque<NamedTag> mine, theirs; // not compared yet
    std::map<int32_t, Member> others;
  };
  Group *find(uint64_t group);
  zero_rt_status take(int32_t from, const ControlMessage &message);
  zero_rt_status answer(uint64_t group, int32_t to);
  int32_t neighbor(const Group &group, size_t distance) const;
  zero_rt_status compare(Group &group);
  zero_rt_status tell(int32_t to, ControlMessage::Kind kind, uint64_t group,
                      uint64_t number, uint64_t step = 0);

  ControlMessages &control;
  std::map<uint64_t, Group> groups;
  std::set<uint64_t> over;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_DESYNC_CHECK_H
