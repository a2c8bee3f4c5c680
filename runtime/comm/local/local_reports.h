//===- local_reports.h - Reports of ranks that are threads ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There is one report of each rank. Others read the reports when they need
// them, or never. Unlike a collective this has no place in an order.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_LOCAL_REPORTS_H
#define ZERO_RT_COMM_LOCAL_REPORTS_H

#include "zero_rt/status.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace zero_rt {

class LocalReports {
public:
  explicit LocalReports(int32_t ranks) : ranks(ranks) {}

  /// Replaces the report that |rank| has posted of |step|. Turns of a step
  /// ascend.
  void post(int32_t rank, uint64_t step, uint64_t turn, const void *report,
            int64_t bytes);

  /// Waits until all ranks have posted their reports of |turn|, and copies them
  /// to |all|. Errors: timeout (a rank did not post, or has left), mismatch (a
  /// rank has posted a later report).
  zero_rt_status collect(uint64_t step, uint64_t turn, void *all, int64_t bytes,
                         int64_t timeoutMs);

  /// Declares that |rank| posts and collects nothing more of |step|.
  void leave(int32_t rank, uint64_t step);

private:
  struct Report {
    uint64_t turn = 0; // 0: none
    bool isOver = false;
    std::vector<char> data;
  };
  std::vector<Report> &reportsOf(uint64_t step);

  int32_t ranks;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, std::vector<Report>> steps; // by rank
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_LOCAL_REPORTS_H
