//===- GpuActivationTest.cpp - Activations between GPUs -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver runs queued work late, and in any order that events allow. So a
// send that does not follow the caller's stream, or a receive that later work
// does not wait for, gives wrong numbers for some seed.
//
//===----------------------------------------------------------------------===//

#include "GpuStage.h"

using namespace zero;
using namespace zero::test;

namespace {

/// How activations travel.
enum class Way { Threads, Hosts, Lanes };
/// The way, and a seed.
using Case = std::tuple<Way, int>;

class GpuActivation : public GpuStageTest,
                      public testing::WithParamInterface<Case> {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    openStages(std::get<1>(GetParam()), 2, {{"hidden", 0, 1}});
  }
  static Way getWay() { return std::get<0>(GetParam()); }
  void runStages(const std::function<void(int, Stage &)> &body) {
    bool areProcesses = getWay() != Way::Threads;
    LaneVariable variable(getWay() == Way::Lanes);
    auto run = [&](int r, zero_rt_group *end) {
      Stage stage(library, end, r, areProcesses ? r : 0);
      body(r, stage);
    };
    if (areProcesses)
      runProcesses(2, run);
    else
      runThreads(2, run);
  }
};

} // namespace

// Gradients come back, and two steps follow each other.
TEST_P(GpuActivation, FollowsAndPrecedesTheStreams) {
  runStages([&](int r, Stage &stage) {
    for (int turn = 0; turn < 2; ++turn) {
      auto bitsOf = [&](int64_t m) { return uint16_t(100 * turn + 10 + m); };
      for (int64_t m = 0; m < microBatches && r == 0; ++m)
        stage.rank.check(stage.send(m, bitsOf(m)));
      for (int64_t m = microBatches - 1; m >= 0 && r == 1; --m) {
        stage.expectReceived(m, bitsOf(m));
        stage.rank.check(stage.send(m, uint16_t(bitsOf(m) + 1000)));
      }
      for (int64_t m = 0; m < microBatches && r == 0; ++m)
        stage.expectReceived(m, uint16_t(bitsOf(m) + 1000));
      stage.run();
      EXPECT_EQ(stage.rank.getResults().verdict, ZERO_RT_APPLIED);
    }
  });
}

// Tensors may be in memory of the host, as those of a caller without PyTorch.
TEST_P(GpuActivation, GoesFromAndToTheHost) {
  runStages([&](int r, Stage &stage) {
    std::vector<float> values(2 * width, r == 0 ? 3.0f : 0.0f);
    zero_rt_tensor tensor = {
        sizeof(zero_rt_tensor), ZERO_RT_F32, ZERO_RT_SPACE_HOST, 0, 2 * width,
        values.data()};
    const int64_t shape[] = {2, width};
    int64_t received[2] = {};
    const zero_rt_calls &calls = stage.rank.calls();
    if (r == 0) {
      stage.rank.check(calls.send(stage.rank.step, stage.hidden, 0, &tensor,
                                  shape, stage.stream));
    } else {
      stage.rank.check(
          calls.receive_shape(stage.rank.step, stage.hidden, 0, received));
      stage.rank.check(calls.receive(stage.rank.step, stage.hidden, 0, &tensor,
                                     stage.stream));
    }
    EXPECT_EQ(cuStreamSynchronize(stage.stream), 0);
    EXPECT_EQ(values, std::vector<float>(values.size(), 3.0f));
  });
}

// Ranks that are processes do not meet, so it may come after their reports.
TEST_P(GpuActivation, OneThatIsLostRefusesTheStep) {
  bool areProcesses = getWay() != Way::Threads;
  runStages([&](int r, Stage &stage) {
    if (r == 0)
      stage.rank.check(stage.send(3, 7));
    stage.run();
    zero_rt_results results = {};
    results.struct_size = sizeof(results);
    EXPECT_EQ(stage.rank.calls().results(stage.rank.step, &results),
              ZERO_RT_MISSING_GRADIENT);
    std::string message = zero_rt_message();
    bool isNamed =
        message.find("activation 'hidden' of micro-batch 3 from "
                     "rank 0 was not received on rank 1") != std::string::npos;
    bool isUnknown = message.find("no rank knows which") != std::string::npos;
    EXPECT_TRUE(isNamed || (areProcesses && isUnknown)) << message;
  });
}

TEST_P(GpuActivation, TypesAndExtentsAreChecked) {
  runStages([&](int r, Stage &stage) {
    const zero_rt_calls &calls = stage.rank.calls();
    zero_rt_tensor tensor = stage.makeTensor(2 * width);
    auto expectRefused = [&](zero_rt_status status, const std::string &text) {
      EXPECT_EQ(status, ZERO_RT_INVALID_ARGUMENT);
      EXPECT_NE(std::string(zero_rt_message()).find(text), std::string::npos)
          << zero_rt_message();
    };
    if (r == 0) {
      const int64_t good[] = {2, width}, bad[] = {2, width + 1};
      expectRefused(calls.send(stage.rank.step, stage.hidden, 1, &tensor, bad,
                               stage.stream),
                    "extent 1 of activation 'hidden' of micro-batch 1 is 7, "
                    "expected 6");
      zero_rt_tensor narrow = tensor;
      narrow.dtype = ZERO_RT_BF16;
      expectRefused(calls.send(stage.rank.step, stage.hidden, 1, &narrow, good,
                               stage.stream),
                    "'hidden'");
      stage.rank.check(stage.send(1, 7));
    } else {
      zero_rt_tensor large = stage.makeTensor(3 * width);
      expectRefused(
          calls.receive(stage.rank.step, stage.hidden, 1, &large, stage.stream),
          "'hidden' has 18 elements");
      stage.expectReceived(1, 7);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Groups, GpuActivation,
    testing::Combine(testing::Values(Way::Threads, Way::Hosts, Way::Lanes),
                     testing::Range(0, 6)));
