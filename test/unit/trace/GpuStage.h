//===- GpuStage.h - A rank that sends and receives activations --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_GPUSTAGE_H
#define ZERO_TEST_UNIT_TRACE_GPUSTAGE_H

#include "CallerDriver.h"
#include "GpuRank.h"

namespace zero::test {

/// The last extent of activations, and the number of their micro-batches.
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

/// Sets the variable of the environment that asks for lanes.
class LaneVariable {
public:
  explicit LaneVariable(bool usesLanes = true) {
    setenv("ZERO_RT_ACTIVATION_LANES", usesLanes ? "1" : "0", 1);
  }
  ~LaneVariable() { unsetenv("ZERO_RT_ACTIVATION_LANES"); }
};

/// Steps with activations.
class GpuStageTest : public GpuTest {
protected:
  using Activations = std::vector<std::tuple<std::string, int, int>>;
  /// Reads the step of |ranks| ranks. |seed| is that of the fake driver.
  void openStages(int seed, int ranks, Activations activations) {
    if (IsSkipped())
      return;
    fake::reset(unsigned(seed));
    library.activations = std::move(activations);
    LowerOptions options;
    options.mesh = "dp=" + std::to_string(ranks);
    options.stage = 1;
    open(options);
  }
};

/// Over lanes.
class GpuLaneTest : public GpuStageTest {
  LaneVariable variable;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_GPUSTAGE_H
