//===- LocalReportsTest.cpp - Reports of ranks that are threads -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/local/local_reports.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

using namespace zero_rt;

namespace {

constexpr uint64_t kStep = 5;

/// Posts |value| for |turn| of the step.
void post(LocalReports &reports, int32_t rank, uint64_t turn, int64_t value) {
  reports.post(rank, kStep, turn, &value, sizeof(value));
}

zero_rt_status collect(LocalReports &reports, uint64_t turn, int64_t (&all)[2],
                       int64_t timeoutMs = 20000) {
  return reports.collect(kStep, turn, all, sizeof(int64_t), timeoutMs);
}

void expectMessage(const std::string &text) {
  EXPECT_NE(std::string(zero_rt_message()).find(text), std::string::npos)
      << zero_rt_message();
}

TEST(LocalReports, ShowsTheLast) {
  LocalReports reports(2);
  int64_t all[2] = {};
  post(reports, 0, 1, 10);
  post(reports, 1, 1, 11);
  EXPECT_EQ(collect(reports, 1, all), ZERO_RT_OK);
  EXPECT_EQ(all[0], 10);
  EXPECT_EQ(all[1], 11);
  post(reports, 0, 2, 20);
  post(reports, 1, 2, 21);
  EXPECT_EQ(collect(reports, 2, all), ZERO_RT_OK);
  EXPECT_EQ(all[0], 20);
  EXPECT_EQ(all[1], 21);
}

TEST(LocalReports, WaitsForThoseWhoAreLate) {
  LocalReports reports(2);
  int64_t all[2] = {};
  post(reports, 0, 1, 10);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    post(reports, 1, 1, 11);
  });
  EXPECT_EQ(collect(reports, 1, all), ZERO_RT_OK);
  EXPECT_EQ(all[1], 11);
  late.join();
}

TEST(LocalReports, NobodyWaitsForever) {
  LocalReports reports(2);
  int64_t all[2] = {};
  post(reports, 0, 1, 10);
  EXPECT_EQ(collect(reports, 1, all, /*timeoutMs=*/20), ZERO_RT_TIMEOUT);
  expectMessage("rank 1 did not say in time what it lacks");
}

TEST(LocalReports, WhoLeavesFreesThoseWhoWait) {
  LocalReports reports(2);
  int64_t all[2] = {};
  post(reports, 0, 1, 10);
  std::thread leaving([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    reports.leave(1, kStep);
  });
  EXPECT_EQ(collect(reports, 1, all), ZERO_RT_TIMEOUT);
  expectMessage("rank 1 has destroyed its step");
  leaving.join();
}

// What a rank posted before it left stays, until all have left.
TEST(LocalReports, OutliveTheirRanks) {
  LocalReports reports(2);
  int64_t all[2] = {};
  post(reports, 0, 1, 10);
  post(reports, 1, 1, 11);
  reports.leave(1, kStep);
  EXPECT_EQ(collect(reports, 1, all), ZERO_RT_OK);
  EXPECT_EQ(all[1], 11);
  reports.leave(0, kStep);
  EXPECT_EQ(collect(reports, 1, all, /*timeoutMs=*/1), ZERO_RT_TIMEOUT);
}

TEST(LocalReports, ARecordThatIsGoneIsAnError) {
  LocalReports reports(2);
  int64_t all[2] = {};
  post(reports, 0, 1, 10);
  post(reports, 1, 2, 21);
  EXPECT_EQ(collect(reports, 1, all), ZERO_RT_MISMATCH);
  expectMessage("rank 1 has applied its step again");
}

// Steps do not see each other's.
TEST(LocalReports, StepsHaveReportsOfTheirOwn) {
  LocalReports reports(2);
  int64_t all[2] = {};
  int64_t value = 7;
  reports.post(0, kStep + 1, 1, &value, sizeof(value));
  reports.post(1, kStep + 1, 1, &value, sizeof(value));
  EXPECT_EQ(collect(reports, 1, all, /*timeoutMs=*/1), ZERO_RT_TIMEOUT);
}

} // namespace
