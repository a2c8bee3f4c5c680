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

#include "CallerDriver.h"
#include "FakeNccl.h"
#include "GpuRank.h"

#include <map>
#include <random>

using namespace zero;
using namespace zero::test;

namespace {

constexpr int64_t width = 6, microBatches = 5;

/// One of two ranks, with a stream of its caller's.
class Stage {
public:
  Stage(StepLibrary &library, zero_rt_group *group, int number, int gpu,
        int64_t timeoutMs = 20000)
      : rank(library, group, number, "cuda", timeoutMs, gpu), gpu(gpu) {
    rank.check(rank.create());
    cuCtxPushCurrent_v2(fake::contextOf(gpu));
    EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
  }
  ~Stage() {
    EXPECT_EQ(cuStreamSynchronize(stream), 0);
    for (void *data : memory)
      rank.check(zero_rt_release(rank.runtime, data));
    rank.destroyStep();
    EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
    cuCtxPopCurrent_v2(nullptr);
  }

  zero_rt_tensor makeTensor(int64_t elements) {
    zero_rt_tensor tensor = {sizeof(zero_rt_tensor),
                             ZERO_RT_F32,
                             ZERO_RT_SPACE_DEVICE,
                             0,
                             elements,
                             nullptr};
    rank.check(zero_rt_allocate(rank.runtime, elements * 4, &tensor.data));
    memory.push_back(tensor.data);
    return tensor;
  }
  /// Queues on the caller's stream that all 16-bit halves get |bits|.
  void write(const zero_rt_tensor &tensor, uint16_t bits) {
    auto address = reinterpret_cast<uintptr_t>(tensor.data);
    EXPECT_EQ(
        cuMemsetD16Async(address, bits, size_t(tensor.elements) * 2, stream),
        0);
  }
  zero_rt_status send(int64_t microBatch, uint16_t bits) {
    return send(microBatch, bits, makeTensor((microBatch + 1) * width));
  }
  zero_rt_status send(int64_t microBatch, uint16_t bits,
                      const zero_rt_tensor &tensor,
                      int32_t activation = hidden) {
    const int64_t shape[] = {microBatch + 1, width};
    write(tensor, bits);
    zero_rt_status status = rank.calls().send(rank.step, activation, microBatch,
                                              &tensor, shape, stream);
    write(tensor, 0xdead); // it has been copied
    return status;
  }
  /// A copy on the caller's stream of what is received.
  zero_rt_tensor receive(int64_t microBatch, int32_t activation = hidden) {
    int64_t shape[2] = {};
    rank.check(
        rank.calls().receive_shape(rank.step, activation, microBatch, shape));
    EXPECT_EQ(shape[0], microBatch + 1);
    EXPECT_EQ(shape[1], width);
    zero_rt_tensor tensor = makeTensor((microBatch + 1) * width);
    zero_rt_tensor copy = makeTensor((microBatch + 1) * width);
    write(tensor, 0xbeef); // before the receive
    rank.check(rank.calls().receive(rank.step, activation, microBatch, &tensor,
                                    stream));
    EXPECT_EQ(cuMemcpyAsync(reinterpret_cast<uintptr_t>(copy.data),
                            reinterpret_cast<uintptr_t>(tensor.data),
                            size_t(copy.elements) * 4, stream),
              0);
    return copy;
  }
  void expect(const zero_rt_tensor &copy, uint16_t bits) {
    EXPECT_EQ(cuStreamSynchronize(stream), 0);
    std::vector<uint16_t> values(size_t(copy.elements) * 2);
    rank.check(zero_rt_copy(rank.runtime, values.data(), copy.data,
                            copy.elements * 4));
    EXPECT_EQ(values, std::vector<uint16_t>(values.size(), bits));
  }
  void expectReceived(int64_t microBatch, uint16_t bits) {
    expect(receive(microBatch), bits);
  }
  void run() {
    rank.run(
        {"fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "fc1.weight"});
  }

  GpuRank rank;
  int gpu;
  static constexpr int32_t hidden = 0;
  zero_rt_stream *stream = nullptr;
  std::vector<void *> memory;
};

/// How activations travel.
enum class Way { Threads, Hosts, Lanes };
/// The way, and a seed.
using Case = std::tuple<Way, int>;

/// Sets the variable of the environment that asks for lanes.
class LaneVariable {
public:
  explicit LaneVariable(bool usesLanes = true) {
    setenv("ZERO_RT_ACTIVATION_LANES", usesLanes ? "1" : "0", 1);
  }
  ~LaneVariable() { unsetenv("ZERO_RT_ACTIVATION_LANES"); }
};

class GpuActivation : public GpuTest, public testing::WithParamInterface<Case> {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped())
      return;
    fake::reset(unsigned(std::get<1>(GetParam())));
    library.activations = {{"hidden", 0, 1}};
    LowerOptions options;
    options.mesh = "dp=2";
    options.stage = 1;
    open(options);
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

// Each tensor goes from GPU to GPU, and no host waits for one.
TEST_P(GpuActivation, GoesOverNcclBetweenProcesses) {
  if (getWay() != Way::Lanes)
    GTEST_SKIP() << "activations go through the hosts";
  runStages([&](int r, Stage &stage) {
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
  // Two lanes, with a byte each when they connect.
  EXPECT_EQ(sends, microBatches + 2);
  EXPECT_EQ(receives, microBatches + 2);
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
class GpuPipeline : public GpuTest, public testing::WithParamInterface<int> {
protected:
  LaneVariable variable;

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped())
      return;
    fake::reset(unsigned(GetParam()));
    library.activations = {
        {"first", 0, 1}, {"second", 1, 2}, {"back", 2, 0}, {"skip", 0, 2}};
    LowerOptions options;
    options.mesh = "dp=3";
    options.stage = 1;
    open(options);
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
TEST_F(GpuTest, LanesAreForAllRanks) {
  library.activations = {{"hidden", 0, 1}};
  LowerOptions options;
  options.mesh = "dp=2";
  options.stage = 1;
  open(options);
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
class GpuLaneFailure : public GpuTest,
                       public testing::WithParamInterface<const char *> {
protected:
  LaneVariable variable;

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped())
      return;
    library.activations = {{"hidden", 0, 1}};
    LowerOptions options;
    options.mesh = "dp=2";
    options.stage = 1;
    open(options);
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
      if (StringRef(GetParam()).starts_with("nccl"))
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
    for (int count : {1, 2, 3, 5, 8}) {
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
