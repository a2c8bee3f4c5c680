//===- GpuLaneTest.cpp - Activations from GPU to GPU ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three ranks send to each other in any order that callers can choose; calls
// fail, and tensors do not come.
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"
#include "GpuStage.h"

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <thread>

using namespace zero;
using namespace zero::test;

namespace {

/// One send or receive of a rank.
struct Passing {
  int rank;
  int32_t activation;
  int64_t microBatch;
  bool isGradient;
  bool isSend;

  uint16_t bits() const {
    return uint16_t(1000 * activation + 10 * microBatch + isGradient);
  }
};

/// Three ranks that send to each other in a ring, and across it.
class GpuPipeline : public GpuLaneTest,
                    public testing::WithParamInterface<int> {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    openStages(
        GetParam(), 3,
        {{"first", 0, 1}, {"second", 1, 2}, {"back", 2, 0}, {"skip", 0, 2}});
  }

  /// All sends and receives in an order in which each is possible.
  std::vector<Passing> draw(std::mt19937 &random) const {
    // An activation goes and its gradient comes back: four steps each.
    std::vector<std::pair<int32_t, int64_t>> waiting;
    std::map<std::pair<int32_t, int64_t>, int> steps;
    for (int32_t a = 0; a < int32_t(library.activations.size()); ++a)
      for (int64_t m = 0; m < microBatches; ++m)
        waiting.push_back({a, m});
    std::vector<Passing> order;
    while (!waiting.empty()) {
      size_t at = random() % waiting.size();
      auto [a, m] = waiting[at];
      int step = steps[waiting[at]]++;
      auto &[name, from, to] = library.activations[size_t(a)];
      bool isAtSource = step == 0 || step == 3;
      order.push_back(
          {isAtSource ? from : to, a, m, step >= 2, step == 0 || step == 2});
      if (step == 3)
        waiting.erase(waiting.begin() + std::ptrdiff_t(at));
    }
    return order;
  }
};

} // namespace

// No GPU waits for one that waits for it, whatever order callers choose.
TEST_P(GpuPipeline, TakesAnyOrderThatIsPossible) {
  std::mt19937 random{unsigned(GetParam())};
  std::vector<std::vector<Passing>> turns = {draw(random), draw(random)};
  runProcesses(3, [&](int r, zero_rt_group *end) {
    Stage stage(library, end, r, r);
    for (const std::vector<Passing> &turn : turns) {
      std::vector<std::pair<zero_rt_tensor, uint16_t>> received;
      for (const Passing &passing : turn) {
        if (passing.rank != r)
          continue;
        int64_t m = passing.microBatch;
        if (passing.isSend)
          stage.rank.check(stage.send(m, passing.bits(),
                                      stage.makeTensor((m + 1) * width),
                                      passing.activation));
        else
          received.push_back(
              {stage.receive(m, passing.activation), passing.bits()});
      }
      for (auto &[copy, bits] : received)
        stage.expect(copy, bits);
      stage.run();
      EXPECT_EQ(stage.rank.getResults().verdict, ZERO_RT_APPLIED);
    }
  });
}

// Each tensor goes from GPU to GPU, and no host waits for one.
TEST_P(GpuPipeline, GoesOverNccl) {
  runProcesses(3, [&](int r, zero_rt_group *end) {
    Stage stage(library, end, r, r);
    std::vector<zero_rt_tensor> tensors;
    for (int64_t m = 0; m < microBatches; ++m)
      tensors.push_back(stage.makeTensor((m + 1) * width));
    fake::mark("begin " + std::to_string(r));
    for (int64_t m = 0; m < microBatches && r == 0; ++m)
      stage.rank.check(stage.send(m, uint16_t(m), tensors[size_t(m)]));
    fake::mark("end " + std::to_string(r));
    for (int64_t m = 0; m < microBatches && r == 1; ++m)
      stage.expectReceived(m, uint16_t(m));
  });
  int sends = 0, receives = 0;
  bool isSending = false;
  std::thread::id sender;
  for (const fake::Call &call : fake::takeCalls()) {
    if (call.function == "begin 0") {
      isSending = true;
      sender = call.thread;
    }
    if (call.function == "end 0")
      isSending = false;
    sends += call.function == "ncclSend";
    receives += call.function == "ncclRecv";
    if (isSending && call.thread == sender)
      EXPECT_FALSE(call.isWait) << call.function;
  }
  // Each pair of ranks has a lane each way, with a byte when they connect.
  EXPECT_EQ(sends, microBatches + 6);
  EXPECT_EQ(receives, microBatches + 6);
}

// A step that is discarded has messages that nobody received. Later ones come.
TEST_P(GpuPipeline, DropsWhatNobodyReceived) {
  runProcesses(3, [&](int r, zero_rt_group *end) {
    Stage stage(library, end, r, r);
    for (int64_t m = 0; m < microBatches && r == 0; ++m)
      stage.rank.check(stage.send(m, 7));
    stage.rank.check(stage.rank.calls().discard(stage.rank.step));
    if (r == 0)
      stage.rank.check(stage.send(2, 8));
    if (r == 1)
      stage.expectReceived(2, 8);
    stage.run();
    EXPECT_EQ(stage.rank.getResults().verdict, ZERO_RT_APPLIED);
    // The step ends with one that nobody received.
    if (r == 0)
      stage.rank.check(stage.send(1, 9));
  });
}

// A source announces a tensor, and its GPU does not reach the other one.
TEST_P(GpuPipeline, WhatWasAnnouncedAndDoesNotComeIsAnError) {
  std::atomic<int> numMissing[] = {3, 3};
  auto meet = [&](int point) {
    for (--numMissing[point]; numMissing[point] > 0;)
      std::this_thread::yield();
  };
  runProcesses(3, [&](int r, zero_rt_group *end) {
    Stage stage(library, end, r, r, /*timeoutMs=*/500);
    meet(0);
    if (r == 0)
      fake::stallNccl(true);
    meet(1);
    for (int64_t m = 0; m < 2 && r == 0; ++m)
      stage.rank.check(stage.send(m, 7));
    if (r != 1)
      return;
    // The second one goes to a copy, for which a stream of the runtime waits.
    auto begin = std::chrono::steady_clock::now();
    zero_rt_tensor tensor = stage.receive(1);
    stage.receive(0);
    EXPECT_NE(zero_rt_copy(stage.rank.runtime, tensor.data, tensor.data, 0),
              ZERO_RT_OK);
    std::string message = zero_rt_message();
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(10));
    EXPECT_NE(message.find("activation from rank 0 to rank 1"),
              std::string::npos)
        << message;
  });
}

// Ranks that want different things are told so.
TEST_F(GpuStageTest, LanesAreForAllRanks) {
  openStages(/*seed=*/0, 2, {{"hidden", 0, 1}});
  std::atomic<int> turn = 0;
  runProcesses(2, [&](int r, zero_rt_group *end) {
    while (turn != r)
      std::this_thread::yield();
    std::optional<GpuRank> rank;
    {
      LaneVariable variable(/*usesLanes=*/r == 1);
      rank.emplace(library, end, r, "cuda", 20000, r);
    }
    ++turn;
    EXPECT_EQ(rank->create(), ZERO_RT_MISMATCH);
    EXPECT_NE(
        std::string(zero_rt_message()).find("ZERO_RT_ACTIVATION_LANES is"),
        std::string::npos)
        << zero_rt_message();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, GpuPipeline, testing::Range(0, 12));

namespace {

/// A function that fails.
class GpuLaneFailure : public GpuLaneTest,
                       public testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    openStages(/*seed=*/0, 2, {{"hidden", 0, 1}});
  }
  /// Makes the step and passes three tensors, which are received in another
  /// order than that of their sends. Function |count| fails from the beginning,
  /// or once |isLate| tensors are there.
  void pass(int count, bool isLate) {
    std::atomic<int> numMissing[] = {2, 2};
    auto meet = [&](int point) {
      for (--numMissing[point]; numMissing[point] > 0;)
        std::this_thread::yield();
    };
    auto fail = [&] {
      if (llvm::StringRef(GetParam()).starts_with("nccl"))
        fake::failNccl(GetParam(), /*error=*/2, count);
      else
        fake::failCall(GetParam(), /*error=*/2, count);
    };
    runProcesses(2, [&](int r, zero_rt_group *end) {
      GpuRank rank(library, end, r, "cuda", /*timeoutMs=*/20000, r);
      meet(0);
      if (r == 0 && !isLate)
        fail();
      bool isThere = !rank.create();
      std::map<int64_t, zero_rt_tensor> tensors;
      for (int64_t m = 0; m < 3 && isThere && isLate; ++m)
        tensors[m] = rank.makeTensor(2 * width, float(r == 0 ? m + 1 : 0));
      meet(1);
      if (r == 0 && isLate)
        fail();
      for (int64_t m = 0; m < 3 && isThere && isLate; ++m) {
        int64_t number = r == 0 ? m : 2 - m;
        isThere = passOne(r, rank, number, tensors[number]);
      }
      for (auto &[m, tensor] : tensors)
        if (isThere && r == 1)
          expectValue(rank, tensor, float(m + 1));
    });
  }

  static bool passOne(int r, GpuRank &rank, int64_t m, zero_rt_tensor tensor) {
    tensor.dtype = ZERO_RT_F32;
    tensor.elements = width;
    const int64_t shape[] = {1, width};
    int64_t received[2] = {};
    const zero_rt_calls &calls = rank.calls();
    if (r == 0)
      return !calls.send(rank.step, 0, m, &tensor, shape, nullptr);
    return !calls.receive_shape(rank.step, 0, m, received) &&
           !calls.receive(rank.step, 0, m, &tensor, nullptr);
  }

  /// A call that looks may fail, too.
  static void expectValue(GpuRank &rank, const zero_rt_tensor &tensor,
                          float value) {
    std::vector<uint16_t> bits(2 * width);
    if (!zero_rt_copy(rank.runtime, bits.data(), tensor.data, 4 * width))
      EXPECT_EQ(bits, std::vector<uint16_t>(bits.size(), toBF16(value)));
  }
};

} // namespace

// A call of the driver or of NCCL may fail at any time. No rank waits for ever,
// and a rank that is told of no error has what was sent.
TEST_P(GpuLaneFailure, IsReported) {
  for (bool isLate : {false, true})
    for (int count : {1, 3, 8}) {
      fake::reset(unsigned(count));
      fake::resetNccl();
      SCOPED_TRACE("failure " + std::to_string(count) +
                   (isLate ? " of tensors" : " of the step"));
      pass(count, isLate);
      fake::reset(0);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Functions, GpuLaneFailure,
    testing::Values("ncclGetUniqueId", "ncclCommInitRankConfig",
                    "ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd",
                    "ncclCommFinalize", "cuStreamCreate", "cuEventCreate",
                    "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyAsync",
                    "cuMemAllocFromPoolAsync"));
