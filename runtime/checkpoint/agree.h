//===- agree.h - The ranks of a checkpoint agree ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each phase of a save and of a load is work of each rank on its own. Then the
// ranks exchange how it went. A rank that failed takes part, so the error of
// one rank is that of all ranks, and no rank waits for a rank that gave up.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_AGREE_H
#define ZERO_RT_CHECKPOINT_AGREE_H

#include "checkpoint/checksum.h"
#include "core/step.h"

#include <vector>

namespace zero_rt {

/// What a rank tells the others after a phase.
struct PhaseReport {
  int64_t number = 0;    // of the caller
  int64_t backwards = 0; // since the last apply
  int64_t save = 0;
  int64_t bytes = 0; // of a file
  char checksum[checksumDigits + 8] = "";
  zero_rt_status status = ZERO_RT_OK;
  char message[516] = "";

  void setChecksum(const std::string &text);
};

/// Runs |work|, which fills the report of this rank, and gathers the reports of
/// all ranks. An error of any rank is an error here, and names the rank. If the
/// ranks cannot exchange reports, the step is poisoned.
template <typename Work>
zero_rt_status agree(Step &step, const char *call, Work work,
                     std::vector<PhaseReport> &all);

/// The second half of `agree`.
zero_rt_status gatherReports(Step &step, const char *call, PhaseReport &mine,
                             std::vector<PhaseReport> &all);

template <typename Work>
zero_rt_status agree(Step &step, const char *call, Work work,
                     std::vector<PhaseReport> &all) {
  PhaseReport mine;
  mine.status = guarded(call, [&] { return work(mine); });
  return gatherReports(step, call, mine, all);
}

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_AGREE_H
