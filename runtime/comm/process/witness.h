//===- witness.h - Who is in which collective of a fabric -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives that are queued are not met in: a rank tells the next one of its
// group what it queued, and compares what it is told by the one before. So a
// difference is found by somebody, if later than on the host. Who waits long
// asks where the others are.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_WITNESS_H
#define ZERO_RT_COMM_PROCESS_WITNESS_H

#include "comm/process/header.h"
#include "comm/process/notes.h"

#include <deque>

namespace zero_rt {

/// Of all groups of a link. Groups are numbers that their ranks agree on and
/// that no two groups have. Lives as long as the link.
class Witness {
public:
  explicit Witness(Notes &notes);

  void join(uint64_t group, std::vector<int32_t> members);
  /// This rank has queued its last of |step| in |group|. What it has queued
  /// will be done.
  void leaveStep(uint64_t group, uint64_t step);
  /// Forgets |group|.
  void leave(uint64_t group);

  /// This rank queues |header|, the next collective of its group, which this
  /// numbers, from 1 on.
  zero_rt_status call(Header &header);
  /// Tells the others that this rank is in collective |number|, and asks who
  /// else is.
  zero_rt_status announce(uint64_t group, uint64_t number);

  /// Takes in what others told. Errors: mismatch (they queued something else).
  zero_rt_status look();
  /// Members that are not known to be in collective |number|.
  std::vector<int32_t> findMissing(uint64_t group, uint64_t number) const;
  /// Why |member| will not come to collective |number|, which is of |step|;
  /// null where nothing speaks against it.
  const char *findLoss(uint64_t group, uint64_t step, int32_t member,
                       uint64_t number) const;

private:
  struct Member {
    uint64_t came = 0;  // to which collective, as far as is known
    uint64_t asked = 0; // about which one; 0: has its answer
    std::set<uint64_t> leftSteps;
  };
  struct Group {
    std::vector<int32_t> members; // none: not joined yet
    uint64_t calls = 0;
    std::deque<Header> mine, theirs; // that are not compared yet
    std::map<int32_t, Member> others;
  };
  Group *find(uint64_t group);
  void take(int32_t from, const Note &note);
  zero_rt_status answer(uint64_t group, int32_t to);
  int32_t neighbor(const Group &group, size_t distance) const;
  zero_rt_status compare(Group &group);
  zero_rt_status tell(int32_t to, Note::Kind kind, uint64_t group,
                      uint64_t number, uint64_t step = 0);

  Notes &notes;
  std::map<uint64_t, Group> groups;
  std::set<uint64_t> over;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_WITNESS_H
