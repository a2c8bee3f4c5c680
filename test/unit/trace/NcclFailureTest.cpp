//===- NcclFailureTest.cpp - What may go wrong between GPUs ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever it is, each rank gets a status that says which rank and collective,
// none waits for ever, and all can give everything back.
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "FakeNccl.h"
#include "GpuRank.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

using namespace zero;
using namespace zero::test;

namespace {

constexpr int kSystemError = 2;
constexpr int kRemoteError = 6;
constexpr int kOutOfMemory = 2;

class NcclFailure : public GpuTest {
protected:
  void openOn(int ranks, int stage = 1) {
    LowerOptions options;
    options.mesh = "dp=" + std::to_string(ranks);
    options.stage = stage;
    open(options);
    statuses.resize(ranks);
    messages.resize(ranks);
  }
  /// What |rank| got from the last call.
  void keep(int rank, zero_rt_status status) {
    statuses[rank] = status;
    messages[rank] = status ? zero_rt_message() : "";
  }
  void expect(int rank, zero_rt_status status, const std::string &text) {
    EXPECT_EQ(statuses[rank], status) << "rank " << rank;
    EXPECT_NE(messages[rank].find(text), std::string::npos)
        << "rank " << rank << ": " << messages[rank];
  }
  /// That at least one rank was told |text|, and each has failed.
  void expectSomewhere(const std::string &text) {
    bool isThere = false;
    for (size_t r = 0; r < statuses.size(); ++r) {
      EXPECT_NE(statuses[r], ZERO_RT_OK) << "rank " << r;
      isThere |= messages[r].find(text) != std::string::npos;
    }
    EXPECT_TRUE(isThere) << messages[0] << "; " << messages[1];
  }

  /// Makes a step on each rank and runs |body|; |start| before any of these.
  using RankBody = std::function<void(int, GpuRank &)>;
  void runSteps(
      const RankBody &body, int64_t timeoutMs = 20000,
      const std::function<void()> &start = [] {}) {
    std::atomic<int> numMissing = int(statuses.size());
    runProcesses(int(statuses.size()), [&](int r, zero_rt_group *group) {
      GpuRank rank(library, group, r, "cuda", timeoutMs);
      ASSERT_EQ(rank.create(), ZERO_RT_OK) << zero_rt_message();
      if (r == 1)
        start();
      for (--numMissing; numMissing > 0;)
        std::this_thread::yield();
      body(r, rank);
    });
  }
  /// The status of an apply without gradients of what may be missing, or that
  /// of its results.
  static zero_rt_status apply(GpuRank &rank) {
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    return finishStep(rank);
  }
  static zero_rt_status finishStep(GpuRank &rank) {
    double rate = 1;
    if (auto status = rank.calls().apply(rank.step, &rate, 1, nullptr))
      return status;
    zero_rt_results results = {};
    results.struct_size = sizeof(results);
    return rank.calls().results(rank.step, &results);
  }

  std::vector<zero_rt_status> statuses; // by rank
  std::vector<std::string> messages;
};

//===----------------------------------------------------------------------===//
// Beginnings
//===----------------------------------------------------------------------===//

TEST_F(NcclFailure, NcclIsTooOld) {
  openOn(2);
  fake::setNcclVersion(21304);
  runProcesses(2, [&](int r, zero_rt_group *group) {
    zero_rt_options options = {};
    options.struct_size = sizeof(options);
    options.device = "cuda";
    zero_rt_runtime *runtime = nullptr;
    keep(r, zero_rt_create(group, r, &options, &runtime));
  });
  for (int r = 0; r < 2; ++r)
    expect(r, ZERO_RT_UNSUPPORTED,
           "NCCL is of version 2.13.4, expected at least 2.14.0");
}

TEST_F(NcclFailure, OneRankNeedsNoNccl) {
  openOn(1);
  fake::setNcclVersion(0);
  runSteps([&](int r, GpuRank &rank) { keep(r, apply(rank)); });
  expect(0, ZERO_RT_MISSING_GRADIENT, "gradient of 'fc1.weight'");
}

class NcclConnectFailure : public NcclFailure {
protected:
  /// Creates steps, which must fail on all ranks.
  void create(int64_t timeoutMs = 20000) {
    openOn(2);
    runProcesses(2, [&](int r, zero_rt_group *group) {
      GpuRank rank(library, group, r, "cuda", timeoutMs);
      keep(r, rank.create());
      EXPECT_EQ(rank.step, nullptr);
    });
  }
};

TEST_F(NcclConnectFailure, ThereIsNoId) {
  fake::failNccl("ncclGetUniqueId", kSystemError);
  create();
  for (int r = 0; r < 2; ++r)
    expect(r, ZERO_RT_DEVICE_FAILED,
           "rank 0: ncclGetUniqueId failed: unhandled system error (2)");
}

TEST_F(NcclConnectFailure, OneRankFails) {
  fake::failNccl("ncclCommInitRankConfig", kSystemError);
  create();
  expectSomewhere("connecting 2 ranks by NCCL 2.14.0: ncclCommInitRankConfig "
                  "failed: unhandled system error (2)");
}

TEST_F(NcclConnectFailure, ItFailsInTheBackground) {
  fake::setAsyncError(1, kRemoteError);
  create();
  expectSomewhere("rank 1: connecting 2 ranks by NCCL 2.14.0: an asynchronous "
                  "part of NCCL failed: remote process exited");
}

// Two ranks of one process may share nothing, and one with a GPU and one
// without cannot meet.
TEST_F(NcclFailure, RanksWithAndWithoutAGpu) {
  openOn(2);
  runProcesses(2, [&](int r, zero_rt_group *group) {
    GpuRank rank(library, group, r, r ? "host" : "cuda");
    keep(r, rank.create());
  });
  for (int r = 0; r < 2; ++r)
    expect(r, ZERO_RT_MISMATCH,
           "rank 1 is on device 'host', rank 0 on 'cuda:0'");
}

//===----------------------------------------------------------------------===//
// In a step
//===----------------------------------------------------------------------===//

TEST_F(NcclFailure, ACallFailsOnOneRank) {
  openOn(2);
  runSteps([&](int r, GpuRank &rank) { keep(r, apply(rank)); }, 20000,
           [] { fake::failNccl("ncclReduceScatter", kSystemError); });
  expectSomewhere("ncclReduceScatter failed: unhandled system error (2)");
  // Whichever of them it was.
  expectSomewhere("reduce_scatter of 'b0.gradient' on rank ");
}

TEST_F(NcclFailure, AnAsynchronousErrorIsSeenWhileWaiting) {
  openOn(2);
  std::promise<void> isQueued;
  runSteps([&](int r, GpuRank &rank) {
    if (r == 1) {
      // The other waits for this one when it happens.
      isQueued.get_future().wait();
      fake::setAsyncError(0, kRemoteError);
      return;
    }
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    double rate = 1;
    rank.check(rank.calls().apply(rank.step, &rate, 1, nullptr));
    isQueued.set_value();
    zero_rt_results results = {};
    results.struct_size = sizeof(results);
    keep(r, rank.calls().results(rank.step, &results));
    EXPECT_EQ(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN),
              ZERO_RT_OK);
    EXPECT_EQ(rank.calls().apply(rank.step, &rate, 1, nullptr),
              ZERO_RT_POISONED);
  });
  EXPECT_EQ(statuses[0], ZERO_RT_DEVICE_FAILED);
  expect(0, ZERO_RT_DEVICE_FAILED,
         "reduce_scatter of 'b0.gradient' on rank 0: an asynchronous part of "
         "NCCL failed: remote process exited");
}

/// (whether ranks connect in their first collective, and give up together).
class NcclAbsence : public NcclFailure,
                    public testing::WithParamInterface<std::tuple<bool, bool>> {
protected:
  void start() {
    fake::connectLate(std::get<0>(GetParam()));
    fake::abortTogether(std::get<1>(GetParam()));
  }
};

// Rank 2 is alive and does not come; the others know that they both did.
TEST_P(NcclAbsence, ARankThatNeverComes) {
  openOn(3);
  start();
  std::promise<void> isOver[2];
  runSteps(
      [&](int r, GpuRank &rank) {
        if (r == 2) {
          isOver[0].get_future().wait();
          isOver[1].get_future().wait();
          keep(r, apply(rank));
          return;
        }
        keep(r, apply(rank));
        isOver[r].set_value();
      },
      /*timeoutMs=*/300);
  for (int r = 0; r < 2; ++r)
    expect(r, ZERO_RT_TIMEOUT,
           "reduce_scatter of 'b0.gradient' did not finish within 300 ms: rank "
           "2 did not come");
  expect(2, ZERO_RT_POISONED, "the group is broken since: reduce_scatter");
}

INSTANTIATE_TEST_SUITE_P(Ways, NcclAbsence,
                         testing::Combine(testing::Bool(), testing::Bool()));

// The others are told why although giving up waits for them.
TEST_F(NcclFailure, OthersAreToldBeforeTheyAreWaitedFor) {
  openOn(2);
  fake::abortTogether(true);
  runSteps([&](int r, GpuRank &rank) { keep(r, apply(rank)); }, 20000,
           [] { fake::failNccl("ncclReduceScatter", kSystemError); });
  for (int r = 0; r < 2; ++r)
    expect(r, statuses[r], "ncclReduceScatter failed: unhandled system error");
}

// Whoever makes its runtime again, all connect again.
TEST_F(NcclFailure, OneRankMakesItsRuntimeAgain) {
  openOn(2);
  runProcesses(2, [&](int r, zero_rt_group *group) {
    auto rank = std::make_unique<GpuRank>(library, group, r);
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(rank->create(), ZERO_RT_OK) << zero_rt_message();
      EXPECT_EQ(apply(*rank), ZERO_RT_MISSING_GRADIENT) << zero_rt_message();
      rank->destroyStep();
      if (r == 0 && round == 0) {
        rank.reset(); // before the other is made
        rank = std::make_unique<GpuRank>(library, group, r);
      }
    }
  });
}

// A framework synchronizes its stream by itself: a thread of the runtime looks.
TEST_F(NcclFailure, TheCallerIsElsewhere) {
  openOn(2);
  std::promise<void> isOver;
  runSteps(
      [&](int r, GpuRank &rank) {
        if (r == 1) {
          isOver.get_future().wait();
          return;
        }
        zero_rt_stream *stream = nullptr;
        ASSERT_EQ(cuCtxPushCurrent_v2(fake::contextOf(0)), 0);
        ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
        rank.check(
            rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
        double rate = 1;
        rank.check(rank.calls().apply(rank.step, &rate, 1, nullptr));
        rank.check(rank.calls().parameter_wait(rank.step, -1, stream));
        while (cuStreamQuery(stream))
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        zero_rt_results results = {};
        results.struct_size = sizeof(results);
        keep(r, rank.calls().results(rank.step, &results));
        EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
        ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), 0);
        isOver.set_value();
      },
      /*timeoutMs=*/300);
  expect(0, ZERO_RT_TIMEOUT,
         "reduce_scatter of 'b0.gradient' did not finish within 300 ms: rank 1 "
         "did not come");
}

TEST_F(NcclFailure, AllComeAndNothingMoves) {
  openOn(2);
  fake::stallNccl(true);
  runSteps([&](int r, GpuRank &rank) { keep(r, apply(rank)); },
           /*timeoutMs=*/300);
  expectSomewhere("reduce_scatter of 'b0.gradient' did not finish within 300 "
                  "ms, though all its ranks queued it");
}

TEST_F(NcclFailure, ARankDestroysItsStep) {
  openOn(2);
  runSteps([&](int r, GpuRank &rank) {
    if (r == 1)
      rank.destroyStep();
    else
      keep(r, apply(rank));
  });
  expect(0, ZERO_RT_TIMEOUT,
         "rank 1 destroyed its step and will not come to reduce_scatter of "
         "'b0.gradient', where rank 0 waits");
}

// It had queued all that the other needs.
TEST_F(NcclFailure, ARankMayLeaveFirst) {
  openOn(2);
  runSteps([&](int r, GpuRank &rank) {
    zero_rt_tensor tensor = rank.makeTensor(64 * 48, 1);
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    for (const auto &[name, elements] : kGpuElements)
      for (int use = 0; use < (name == "fc1.weight" ? 2 : 1); ++use) {
        tensor.elements = elements;
        rank.check(rank.calls().gradient(rank.step, rank.find(name), &tensor,
                                         nullptr, nullptr));
      }
    double rate = 1;
    rank.check(rank.calls().apply(rank.step, &rate, 1, nullptr));
    if (r == 1)
      rank.destroyStep();
    else
      rank.getResults();
  });
}

// At stage 2 each backward pass has collectives of its own.
TEST_F(NcclFailure, RanksQueueDifferentCollectives) {
  openOn(2, /*stage=*/2);
  runSteps([&](int r, GpuRank &rank) {
    if (r == 1) {
      rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
      keep(r, rank.calls().accumulate(rank.step));
      if (statuses[r])
        return;
    }
    keep(r, apply(rank));
  });
  expectSomewhere("rank 0 is in all_reduce_scalars of 'statistics', rank 1 in "
                  "reduce_scatter_add of 'b0.gradient'");
}

// What one rank lacks alone, the others learn of; wherever that is.
TEST_F(NcclFailure, NoMemoryForAddends) {
  library.wire = "bf16";
  openOn(2);
  bool isReached = false;
  // Ranks allocate at the same time, so a count may miss what is looked for.
  constexpr int mostRuns = 400;
  int count = 1;
  for (int i = 0; i < mostRuns && !isReached && !HasFailure(); ++i) {
    runSteps([&](int r, GpuRank &rank) { keep(r, apply(rank)); }, 20000,
             [&] {
               fake::failCall("cuMemAllocFromPoolAsync", kOutOfMemory, count);
             });
    bool hasFailed = statuses[0] != ZERO_RT_MISSING_GRADIENT ||
                     statuses[1] != ZERO_RT_MISSING_GRADIENT;
    if (hasFailed)
      expectSomewhere("no memory for ");
    else // not the next step's
      fake::failCall("cuMemAllocFromPoolAsync", kOutOfMemory, 1 << 30);
    count = hasFailed ? count + 1 : 1;
    isReached = messages[1].find("bytes of other ranks") != std::string::npos;
  }
  EXPECT_TRUE(isReached);
  // Whichever of them it was, both say so.
  for (int r = 0; r < 2; ++r)
    expect(r, statuses[r], "reduce_scatter of 'b0.wire' on rank ");
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

// Each rank learns what the others lack.
TEST_F(NcclFailure, AMissingGradientIsNamed) {
  openOn(2);
  runSteps([&](int r, GpuRank &rank) {
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    zero_rt_tensor tensor = rank.makeTensor(64 * 48, 1);
    for (const auto &[name, elements] : kGpuElements)
      for (int use = 0; use < (name == "fc1.weight" ? 2 : 1); ++use) {
        if (r == 1 && name == "fc1.bias")
          continue;
        tensor.elements = elements;
        rank.check(rank.calls().gradient(rank.step, rank.find(name), &tensor,
                                         nullptr, nullptr));
      }
    keep(r, finishStep(rank));
  });
  for (int r = 0; r < 2; ++r)
    expect(r, ZERO_RT_MISSING_GRADIENT,
           "step refused: gradient of 'fc1.bias' never arrived on rank 1 "
           "(backward pass 1 of 1)");
}

// What goes wrong on one rank outside of a collective, the others learn of too.
TEST_F(NcclFailure, OthersAreToldWhyARankCannotGoOn) {
  openOn(2);
  runSteps([&](int r, GpuRank &rank) {
    if (r == 0) {
      keep(r, apply(rank));
      return;
    }
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    zero_rt_tensor tensor = rank.makeTensor(64, 1);
    fake::failCall("cuLaunchKernel", 719);
    keep(r, rank.calls().gradient(rank.step, rank.find("fc1.bias"), &tensor,
                                  nullptr, nullptr));
    // The launch that failed may have been the other's.
    if (!statuses[r])
      keep(r, finishStep(rank));
  });
  for (int r = 0; r < 2; ++r) {
    EXPECT_NE(statuses[r], ZERO_RT_OK);
    expect(r, statuses[r], "cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED");
  }
}

// A rank that goes on to a meeting answers there.
TEST_F(NcclFailure, WhoMeetsAnswers) {
  openOn(2);
  runSteps([&](int r, GpuRank &rank) {
    rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
    double rate = 1;
    rank.check(rank.calls().apply(rank.step, &rate, 1, nullptr));
    zero_rt_step *first = rank.step;
    if (r == 0) {
      // The other one is in the meeting by then.
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      zero_rt_results results = {};
      results.struct_size = sizeof(results);
      keep(r, rank.calls().results(rank.step, &results));
    }
    rank.step = nullptr;
    EXPECT_EQ(rank.create(), ZERO_RT_OK) << zero_rt_message();
    rank.destroyStep();
    rank.step = first;
  });
  expect(0, ZERO_RT_MISSING_GRADIENT, "gradient of 'fc1.weight'");
}

} // namespace
