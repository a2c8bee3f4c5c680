//===- agree.cpp - The ranks of a checkpoint agree ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/agree.h"

#include "core/protocol.h"
#include "core/status.h"

#include <cstdio>

using namespace zero_rt;

void PhaseReport::setChecksum(const std::string &text) {
  std::snprintf(checksum, sizeof(checksum), "%s", text.c_str());
}

zero_rt_status zero_rt::gatherReports(Step &step, const char *call,
                                      PhaseReport &mine,
                                      std::vector<PhaseReport> &all) {
  if (mine.status)
    std::snprintf(mine.message, sizeof(mine.message), "%s", lastMessage());
  Runtime &runtime = *step.runtime;
  Tag tag = {call, nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, step.id};
  zero_rt_status status = guarded(call, [&] {
    all.resize(size_t(runtime.ranks));
    return runtime.communicator->exchange(tag, &mine, all.data(),
                                          int64_t(sizeof(PhaseReport)));
  });
  if (status) {
    poisonStep(step, call, status);
    return status;
  }
  for (PhaseReport &report : all) {
    report.checksum[sizeof(report.checksum) - 1] = 0;
    report.message[sizeof(report.message) - 1] = 0;
  }
  // The failure of this rank comes first.
  size_t failed = size_t(runtime.rank);
  for (size_t r = 0; r < all.size() && !all[failed].status; ++r)
    if (all[r].status)
      failed = r;
  if (!all[failed].status)
    return ZERO_RT_OK;
  return fail(all[failed].status, "%s failed on rank %zu: %s", call, failed,
              all[failed].message);
}
