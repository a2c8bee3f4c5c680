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
#include "GpuRank.h"

using namespace zero;
using namespace zero::test;

namespace {

constexpr int64_t width = 6, microBatches = 5;

/// One of two ranks, with a stream of its caller's.
class Stage {
public:
  Stage(StepLibrary &library, zero_rt_group *group, int number, int gpu)
      : rank(library, group, number, "cuda", /*timeoutMs=*/20000, gpu),
        gpu(gpu) {
    rank.check(rank.create());
    cuCtxPushCurrent_v2(fake::contextOf(gpu));
    EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
    rank.check(rank.calls().find_activation(rank.step, "hidden", &hidden));
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
                      const zero_rt_tensor &tensor) {
    const int64_t shape[] = {microBatch + 1, width};
    write(tensor, bits);
    zero_rt_status status = rank.calls().send(rank.step, hidden, microBatch,
                                              &tensor, shape, stream);
    write(tensor, 0xdead); // it has been copied
    return status;
  }
  void expectReceived(int64_t microBatch, uint16_t bits) {
    int64_t shape[2] = {};
    rank.check(
        rank.calls().receive_shape(rank.step, hidden, microBatch, shape));
    EXPECT_EQ(shape[0], microBatch + 1);
    EXPECT_EQ(shape[1], width);
    zero_rt_tensor tensor = makeTensor((microBatch + 1) * width);
    zero_rt_tensor copy = makeTensor((microBatch + 1) * width);
    write(tensor, 0xbeef); // before the receive
    rank.check(
        rank.calls().receive(rank.step, hidden, microBatch, &tensor, stream));
    EXPECT_EQ(cuMemcpyAsync(reinterpret_cast<uintptr_t>(copy.data),
                            reinterpret_cast<uintptr_t>(tensor.data),
                            size_t(copy.elements) * 4, stream),
              0);
    EXPECT_EQ(cuStreamSynchronize(stream), 0);
    std::vector<uint16_t> values(size_t(copy.elements) * 2);
    rank.check(zero_rt_copy(rank.runtime, values.data(), copy.data,
                            copy.elements * 4));
    EXPECT_EQ(values, std::vector<uint16_t>(values.size(), bits)) << microBatch;
  }
  void run() {
    rank.run(
        {"fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "fc1.weight"});
  }

  GpuRank rank;
  int gpu;
  int32_t hidden = -1;
  zero_rt_stream *stream = nullptr;
  std::vector<void *> memory;
};

/// Whether ranks are processes, and a seed.
using Case = std::tuple<bool, int>;

class GpuActivation : public GpuTest, public testing::WithParamInterface<Case> {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped())
      return;
    fake::reset(unsigned(std::get<1>(GetParam())));
    library.hasActivation = true;
    LowerOptions options;
    options.mesh = "dp=2";
    options.stage = 1;
    open(options);
  }
  void runStages(const std::function<void(int, Stage &)> &body) {
    bool areProcesses = std::get<0>(GetParam());
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

// Each tensor goes from GPU to GPU, and no host waits for one.
TEST_P(GpuActivation, GoesOverNcclBetweenProcesses) {
  if (!std::get<0>(GetParam()))
    GTEST_SKIP() << "ranks that are threads have no lanes";
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
  bool areProcesses = std::get<0>(GetParam());
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

INSTANTIATE_TEST_SUITE_P(Groups, GpuActivation,
                         testing::Combine(testing::Bool(),
                                          testing::Range(0, 6)));
