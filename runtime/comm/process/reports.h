//===- reports.h - Reports of ranks that are processes ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same as comm/local/local_reports.h, for processes. A rank keeps its
// report. A rank that needs the reports of the others sends its own, and they
// answer when they look.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_REPORTS_H
#define ZERO_RT_COMM_PROCESS_REPORTS_H

#include "comm/process/control_messages.h"

#include <vector>

namespace zero_rt {

class Reports {
public:
  explicit Reports(ControlMessages &control);

  /// Replaces the report that this rank kept of |step|. Turns of a step ascend.
  zero_rt_status keep(uint64_t step, uint64_t turn, const void *report,
                      int64_t bytes);
  /// Waits until all ranks have sent their reports of |turn|, and copies them
  /// to |all|. Errors: timeout (a rank did not send, or has left), mismatch (a
  /// rank has kept a later report).
  zero_rt_status collect(uint64_t step, uint64_t turn, void *all, int64_t bytes,
                         int64_t timeoutMs);
  /// Declares that this rank keeps and collects nothing more of |step|.
  void leave(uint64_t step);

  ControlMessages &control;

private:
  struct Step {
    ControlMessage mine;
    std::map<int32_t, uint64_t> sent; // by rank: the turn that was sent last
    std::map<int32_t, ControlMessage> theirs; // by rank: the last report
    std::set<int32_t> left; // the ranks that have destroyed the step
  };
  zero_rt_status take(int32_t from, const ControlMessage &message);
  zero_rt_status answer(Step &step, int32_t to);
  zero_rt_status await(Step &step, int32_t rank, uint64_t turn, Deadline end);

  std::map<uint64_t, Step> steps;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_REPORTS_H
