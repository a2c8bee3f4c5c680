//===- records.h - What ranks leave for each other, by note -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A board (comm/local/board.h) for processes. A rank keeps its record. A rank
// that needs the records of the others sends its own, and they answer when they
// look.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_RECORDS_H
#define ZERO_RT_COMM_PROCESS_RECORDS_H

#include "comm/process/notes.h"

#include <vector>

namespace zero_rt {

class Records {
public:
  explicit Records(Notes &notes);

  /// Replaces the record that this rank kept of |step|. Turns of a step ascend.
  zero_rt_status keep(uint64_t step, uint64_t turn, const void *record,
                      int64_t bytes);
  /// Waits until all ranks have sent their records of |turn|, and copies them
  /// to |all|. Errors: timeout (a rank did not send, or has left), mismatch (a
  /// rank has kept a later record).
  zero_rt_status collect(uint64_t step, uint64_t turn, void *all, int64_t bytes,
                         int64_t timeoutMs);
  /// Answers the ranks that have asked. Called in loops that wait for something
  /// else.
  zero_rt_status look() { return notes.poll(); }
  /// Declares that this rank keeps and collects nothing more of |step|.
  void leave(uint64_t step);

  Notes &notes;

private:
  struct Step {
    Note mine;
    std::map<int32_t, uint64_t> sent; // by rank: the turn that was sent last
    std::map<int32_t, Note> theirs;   // by rank: the last record
    std::set<int32_t> left;           // the ranks that have destroyed the step
  };
  void take(int32_t from, const Note &note);
  zero_rt_status answer(Step &step, int32_t to);
  zero_rt_status await(Step &step, int32_t rank, uint64_t turn, Deadline end);

  std::map<uint64_t, Step> steps;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_RECORDS_H
