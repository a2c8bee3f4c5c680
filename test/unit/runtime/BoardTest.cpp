//===- BoardTest.cpp - What ranks leave for each other to read ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/local/board.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

using namespace zero_rt;

namespace {

constexpr uint64_t kStep = 5;

/// Posts |value| for |turn| of the step.
void post(Board &board, int32_t rank, uint64_t turn, int64_t value) {
  board.post(rank, kStep, turn, &value, sizeof(value));
}

zero_rt_status collect(Board &board, uint64_t turn, int64_t (&all)[2],
                       int64_t timeoutMs = 20000) {
  return board.collect(kStep, turn, all, sizeof(int64_t), timeoutMs);
}

void expectMessage(const std::string &text) {
  EXPECT_NE(std::string(zero_rt_message()).find(text), std::string::npos)
      << zero_rt_message();
}

TEST(Board, ShowsTheLastRecords) {
  Board board(2);
  int64_t all[2] = {};
  post(board, 0, 1, 10);
  post(board, 1, 1, 11);
  EXPECT_EQ(collect(board, 1, all), ZERO_RT_OK);
  EXPECT_EQ(all[0], 10);
  EXPECT_EQ(all[1], 11);
  post(board, 0, 2, 20);
  post(board, 1, 2, 21);
  EXPECT_EQ(collect(board, 2, all), ZERO_RT_OK);
  EXPECT_EQ(all[0], 20);
  EXPECT_EQ(all[1], 21);
}

TEST(Board, WaitsForThoseWhoAreLate) {
  Board board(2);
  int64_t all[2] = {};
  post(board, 0, 1, 10);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    post(board, 1, 1, 11);
  });
  EXPECT_EQ(collect(board, 1, all), ZERO_RT_OK);
  EXPECT_EQ(all[1], 11);
  late.join();
}

TEST(Board, NobodyWaitsForever) {
  Board board(2);
  int64_t all[2] = {};
  post(board, 0, 1, 10);
  EXPECT_EQ(collect(board, 1, all, /*timeoutMs=*/20), ZERO_RT_TIMEOUT);
  expectMessage("rank 1 did not say in time what it lacks");
}

TEST(Board, WhoLeavesFreesThoseWhoWait) {
  Board board(2);
  int64_t all[2] = {};
  post(board, 0, 1, 10);
  std::thread leaving([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    board.leave(1, kStep);
  });
  EXPECT_EQ(collect(board, 1, all), ZERO_RT_TIMEOUT);
  expectMessage("rank 1 has destroyed its step");
  leaving.join();
}

// What a rank posted before it left stays, until all have left.
TEST(Board, RecordsOutliveTheirRanks) {
  Board board(2);
  int64_t all[2] = {};
  post(board, 0, 1, 10);
  post(board, 1, 1, 11);
  board.leave(1, kStep);
  EXPECT_EQ(collect(board, 1, all), ZERO_RT_OK);
  EXPECT_EQ(all[1], 11);
  board.leave(0, kStep);
  EXPECT_EQ(collect(board, 1, all, /*timeoutMs=*/1), ZERO_RT_TIMEOUT);
}

TEST(Board, ARecordThatIsGoneIsAnError) {
  Board board(2);
  int64_t all[2] = {};
  post(board, 0, 1, 10);
  post(board, 1, 2, 21);
  EXPECT_EQ(collect(board, 1, all), ZERO_RT_MISMATCH);
  expectMessage("rank 1 has applied its step again");
}

// Steps do not see each other's.
TEST(Board, StepsHaveRecordsOfTheirOwn) {
  Board board(2);
  int64_t all[2] = {};
  int64_t value = 7;
  board.post(0, kStep + 1, 1, &value, sizeof(value));
  board.post(1, kStep + 1, 1, &value, sizeof(value));
  EXPECT_EQ(collect(board, 1, all, /*timeoutMs=*/1), ZERO_RT_TIMEOUT);
}

} // namespace
