//===- CheckpointBackgroundTest.cpp - Training goes on during a save ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "checkpoint/files.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

std::atomic<bool> mayWrite;

/// Files of ranks are written only once |mayWrite| is set.
int holdWrites(const char *operation, const std::string &path) {
  bool isRank = path.find("/rank-0") != path.npos;
  for (int i = 0; i < 2000 && isRank && !mayWrite; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return !isRank || mayWrite ? 0 : ETIMEDOUT;
}

class CheckpointBackground : public testing::Test {
protected:
  CheckpointBackground() : library(makeStateStep({2})) {
    mayWrite = false;
    fileFault = holdWrites;
  }
  ~CheckpointBackground() override { fileFault = nullptr; }

  zero_rt_status begin(zero_rt_step *step, int64_t number) {
    return callsOf(step).save_begin(step, folder.at().c_str(), number);
  }
  static void train(zero_rt_step *step) {
    expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    passAll(step);
    expectOk(applyStep(step));
  }

  TemporaryFolder folder;
  LibraryBuilder library;
};

} // namespace

TEST_F(CheckpointBackground, TrainingGoesOn) {
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 1);
    expectOk(begin(step, 10));
    fillState(step, 2);
    train(step);
    train(step);
    EXPECT_FALSE(hasState(step, 1));
    mayWrite = true;
    expectOk(callsOf(step).save_end(step));
    int64_t number = 0;
    expectOk(load(step, folder.at(), &number));
    EXPECT_EQ(number, 10);
    EXPECT_TRUE(hasState(step, 1));
    // And once more.
    fillState(step, 3);
    expectOk(begin(step, 11));
    expectOk(callsOf(step).save_end(step));
  });
  expectLoads(library.get(), folder.at(), 3, 11);
  EXPECT_EQ(namesIn(folder.at()).size(), 2u);
}

TEST_F(CheckpointBackground, OneAtATime) {
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    mayWrite = true;
    expectStatus(ZERO_RT_PROTOCOL, calls.save_end(step),
                 "no save has begun; call save_begin first");
    fillState(step, 1);
    expectOk(begin(step, 1));
    expectStatus(ZERO_RT_PROTOCOL, begin(step, 2),
                 "has not ended; call save_end first");
    expectStatus(ZERO_RT_PROTOCOL, save(step, folder.at(), 2),
                 "has not ended; call save_end first");
    expectOk(calls.save_end(step));
    // Where a rank cannot end it now, the save waits on all ranks.
    expectOk(begin(step, 2));
    if (rank == 1)
      expectOk(calls.begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    expectStatus(ZERO_RT_PROTOCOL, calls.save_end(step),
                 "save_end failed on rank 1: save_end in state 'first'");
    if (rank == 1)
      expectOk(calls.discard(step));
    expectOk(calls.save_end(step));
    expectStatus(ZERO_RT_PROTOCOL, calls.save_end(step), "no save has begun");
    expectStatus(ZERO_RT_MISMATCH, begin(step, rank),
                 "rank 1 saves number 1, rank 0 number 0");
  });
  expectLoads(library.get(), folder.at(), 1, 2);
  EXPECT_EQ(namesIn(folder.at()).size(), 2u);
}

TEST_F(CheckpointBackground, AStepThatIsDestroyedDropsItsSave) {
  mayWrite = true;
  saveState(library.get(), folder.at(), 1, 1);
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 2);
    expectOk(begin(step, 2));
  });
  expectLoads(library.get(), folder.at(), 1, 1);
  saveState(library.get(), folder.at(), 3, 3);
  EXPECT_EQ(namesIn(folder.at()).size(), 2u);
}
