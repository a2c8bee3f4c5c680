//===- board.h - What ranks leave for each other to read --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A board has one record of each rank. Others read the records when they need
// them, or never. Unlike a collective this has no place in an order.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_LOCAL_BOARD_H
#define ZERO_RT_COMM_LOCAL_BOARD_H

#include "zero_rt/status.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace zero_rt {

class Board {
public:
  explicit Board(int32_t ranks) : ranks(ranks) {}

  /// Replaces the record that |rank| has posted of |step|. Turns of a step
  /// ascend.
  void post(int32_t rank, uint64_t step, uint64_t turn, const void *record,
            int64_t bytes);

  /// Waits until all ranks have posted their records of |turn|, and copies them
  /// to |all|. Errors: timeout (a rank did not post, or has left), mismatch (a
  /// rank has posted a later record).
  zero_rt_status collect(uint64_t step, uint64_t turn, void *all, int64_t bytes,
                         int64_t timeoutMs);

  /// Declares that |rank| posts and collects nothing more of |step|.
  void leave(int32_t rank, uint64_t step);

private:
  struct Note {
    uint64_t turn = 0; // 0: none
    bool isOver = false;
    std::vector<char> record;
  };
  std::vector<Note> &notesOf(uint64_t step);

  int32_t ranks;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, std::vector<Note>> steps; // by rank
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_LOCAL_BOARD_H
