//===- local_reports.cpp - Reports of ranks that are threads --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/local/local_reports.h"

#include "core/status.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace zero_rt;

std::vector<LocalReports::Report> &LocalReports::reportsOf(uint64_t step) {
  std::vector<Report> &reports = steps[step];
  reports.resize(size_t(ranks));
  return reports;
}

void LocalReports::post(int32_t rank, uint64_t step, uint64_t turn,
                        const void *report, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  Report &mine = reportsOf(step)[size_t(rank)];
  auto *data = static_cast<const char *>(report);
  mine.data.assign(data, data + bytes);
  mine.turn = turn;
  changed.notify_all();
}

zero_rt_status LocalReports::collect(uint64_t step, uint64_t turn, void *all,
                                     int64_t bytes, int64_t timeoutMs) {
  std::unique_lock<std::mutex> lock(mutex);
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Report &report = reportsOf(step)[size_t(rank)];
    bool isThere = changed.wait_until(
        lock, deadline, [&] { return report.turn >= turn || report.isOver; });
    if (report.turn < turn)
      return fail(ZERO_RT_TIMEOUT,
                  isThere ? "rank %d has destroyed its step, and did not say "
                            "what it lacks"
                          : "rank %d did not say in time what it lacks",
                  rank);
    if (report.turn > turn)
      return fail(ZERO_RT_MISMATCH,
                  "rank %d has applied its step again; read the results of a "
                  "refused step before the next apply of any rank",
                  rank);
    std::memcpy(static_cast<char *>(all) + rank * bytes, report.data.data(),
                size_t(bytes));
  }
  return ZERO_RT_OK;
}

void LocalReports::leave(int32_t rank, uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<Report> &reports = reportsOf(step);
  reports[size_t(rank)].isOver = true;
  if (std::all_of(reports.begin(), reports.end(),
                  [](const Report &report) { return report.isOver; }))
    steps.erase(step);
  changed.notify_all();
}
