//===- GpuStreamTest.cpp - Streams of the caller --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver runs queued work late, and in any order that events allow:
// where the runtime forgets to follow or to precede a stream, numbers are wrong
// for some seed.
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "GpuRank.h"

#include <algorithm>
#include <set>

using namespace zero;
using namespace zero::test;

namespace {

unsigned long long addressOf(const void *data) {
  return static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(data));
}

/// A seed, a ZeRO stage, and whether gradients are delivered together. At stage
/// 2 gradients wait for their buckets.
using Case = std::tuple<int, int, bool>;

/// One rank, and a stream of its caller's.
class GpuStream : public GpuTest, public testing::WithParamInterface<Case> {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped())
      return;
    fake::reset(unsigned(std::get<0>(GetParam())));
    LowerOptions options;
    options.mesh = "dp=1";
    options.stage = std::get<1>(GetParam());
    options.bucketBytes = bucketBytes;
    open(options);
    ASSERT_EQ(zero_rt_local_group_create(1, &group), ZERO_RT_OK);
    rank = std::make_unique<GpuRank>(library, group, 0);
    ASSERT_EQ(rank->create(), ZERO_RT_OK) << zero_rt_message();
    cuCtxPushCurrent_v2(fake::contextOf(0));
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
    for (const auto &[name, elements] : kGpuElements) {
      if (library.isF32)
        break;
      zero_rt_tensor tensor = rank->makeTensor(elements, 1);
      rank->check(
          rank->calls().bind_parameter(rank->step, rank->find(name), &tensor));
    }
  }
  void TearDown() override {
    if (IsSkipped())
      return;
    EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
    cuCtxPopCurrent_v2(nullptr);
    rank.reset();
    GpuTest::TearDown();
  }

  int64_t bucketBytes = 1; // one for each parameter
  /// Queues on the caller's stream that |tensor| gets |value|.
  void write(const zero_rt_tensor &tensor, float value) {
    EXPECT_EQ(cuMemsetD16Async(addressOf(tensor.data), toBF16(value),
                               size_t(tensor.elements), stream),
              0);
  }
  /// Puts the caller's stream far behind.
  void delay() {
    zero_rt_tensor scratch = rank->makeTensor(1, 0);
    for (int i = 0; i < 200; ++i)
      write(scratch, 0);
  }
  void begin() {
    rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_LAST));
  }
  /// Delivers |gradients|, by name, and keeps their releases if they are
  /// |lent|.
  void deliver(const std::map<std::string, zero_rt_tensor> &gradients,
               const std::set<std::string> &but = {}, bool lent = true) {
    std::vector<int32_t> parameters;
    std::vector<zero_rt_tensor> tensors;
    for (const auto &[name, tensor] : gradients)
      for (int use = 0; !but.count(name) && use < getUses(name); ++use) {
        parameters.push_back(rank->find(name));
        tensors.push_back(tensor);
      }
    size_t first = releases.size();
    releases.resize(first + (lent ? tensors.size() : 0));
    zero_rt_timepoint *release = lent ? releases.data() + first : nullptr;
    bool isBatch = std::get<2>(GetParam());
    if (isBatch)
      rank->check(
          rank->calls().gradients(rank->step, parameters.data(), tensors.data(),
                                  int64_t(tensors.size()), stream, release));
    for (size_t i = 0; !isBatch && i < tensors.size(); ++i)
      rank->check(rank->calls().gradient(rank->step, parameters[i], &tensors[i],
                                         stream, lent ? release++ : nullptr));
  }
  /// fc1.weight is declared with two.
  int getUses(const std::string &name) { return name == "fc1.weight" ? 2 : 1; }
  /// Closes the backward pass, so that nothing waits any more.
  void close() { rank->check(rank->calls().accumulate(rank->step)); }
  void apply() {
    double rate = 0.125;
    rank->check(rank->calls().apply(rank->step, &rate, 1, stream));
  }
  std::map<std::string, zero_rt_tensor> makeGradients(float value) {
    std::map<std::string, zero_rt_tensor> gradients;
    for (const auto &[name, elements] : kGpuElements)
      gradients[name] = rank->makeTensor(elements, value);
    return gradients;
  }
  /// The norm before clipping, of gradients of one number for each use.
  void expectNorm(float value, const std::string &but = "") {
    double squares = 0;
    for (const auto &[name, elements] : kGpuElements)
      squares += name == but ? 0
                             : double(elements) * value * value *
                                   double(getUses(name) * getUses(name));
    EXPECT_FLOAT_EQ(float(rank->getResults().values[0]),
                    float(std::sqrt(squares)));
  }

  std::unique_ptr<GpuRank> rank;
  zero_rt_stream *stream = nullptr;
  std::vector<zero_rt_timepoint> releases;
};

TEST_P(GpuStream, GradientsAreReadAfterTheyAreWritten) {
  auto gradients = makeGradients(-3);
  begin();
  delay();
  for (const auto &[name, tensor] : gradients)
    write(tensor, 0.5);
  deliver(gradients);
  apply();
  expectNorm(0.5);
}

// At stage 2 the buckets behind that of a gradient which never comes are not
// open: what is for them waits until the backward pass is closed. It is
// delivered last, so that no other call follows the stream for it.
TEST_P(GpuStream, GradientsThatWaitAreReadAfterTheyAreWritten) {
  auto gradients = makeGradients(-3);
  begin();
  write(gradients["fc2.weight"], 0.5);
  deliver({{"fc2.weight", gradients["fc2.weight"]}});
  delay();
  for (const auto &[name, tensor] : gradients)
    if (name != "fc2.weight")
      write(tensor, 0.5);
  deliver(gradients, /*but=*/{"fc2.bias", "fc2.weight"});
  close();
  apply();
  expectNorm(0.5, /*but=*/"fc2.bias");
}

// What waits at stage 2 was delivered on one stream, and the gradient that
// opens its bucket comes on another.
TEST_P(GpuStream, GradientsOfTwoStreamsAreReadAfterTheyAreWritten) {
  auto gradients = makeGradients(-3);
  begin();
  delay();
  for (const auto &[name, tensor] : gradients)
    if (name != "fc2.bias")
      write(tensor, 0.5);
  deliver(gradients, /*but=*/{"fc2.bias"});
  zero_rt_stream *other = nullptr;
  ASSERT_EQ(cuStreamCreate(&other, 1), 0);
  std::swap(stream, other);
  write(gradients["fc2.bias"], 0.5);
  deliver({{"fc2.bias", gradients["fc2.bias"]}});
  close();
  std::swap(stream, other);
  apply();
  expectNorm(0.5);
  EXPECT_EQ(cuStreamDestroy_v2(other), 0);
}

TEST_P(GpuStream, GradientsThatWaitAreCopiedBeforeTheirStreamGoesOn) {
  auto gradients = makeGradients(0.5);
  begin();
  deliver(gradients, /*but=*/{"fc2.bias"}, /*lent=*/false);
  for (const auto &[name, tensor] : gradients)
    write(tensor, -3);
  close();
  apply();
  expectNorm(0.5, /*but=*/"fc2.bias");
}

TEST_P(GpuStream, ReleasedGradientsMayBeOverwritten) {
  auto gradients = makeGradients(0.5);
  begin();
  deliver(gradients);
  close();
  for (zero_rt_timepoint release : releases)
    rank->check(zero_rt_stream_wait(rank->runtime, stream, release));
  for (const auto &[name, tensor] : gradients)
    write(tensor, -3);
  apply();
  expectNorm(0.5);
}

TEST_P(GpuStream, TheHostMayWaitForARelease) {
  auto gradients = makeGradients(0.5);
  begin();
  deliver(gradients);
  close();
  for (zero_rt_timepoint release : releases)
    rank->check(zero_rt_wait(rank->runtime, release));
  for (const auto &[name, tensor] : gradients)
    write(tensor, -3);
  apply();
  expectNorm(0.5);
}

// Nothing happens on the stream until it is no longer held.
TEST_P(GpuStream, TheHostMayAskForARelease) {
  auto gradients = makeGradients(0.5);
  begin();
  (void)fake::takeCalls();
  write(gradients["fc1.bias"], 0.5);
  fake::holdStream(fake::takeCalls().front().stream);
  deliver(gradients);
  close();
  auto countPassed = [&] {
    int32_t count = 0;
    for (zero_rt_timepoint release : releases) {
      int32_t hasPassed = 0;
      rank->check(zero_rt_has_passed(rank->runtime, release, &hasPassed));
      count += hasPassed;
    }
    return count;
  };
  EXPECT_EQ(countPassed(), 0);
  fake::holdStream(-1);
  for (zero_rt_timepoint release : releases)
    rank->check(zero_rt_wait(rank->runtime, release));
  EXPECT_EQ(countPassed(), int32_t(releases.size()));
  apply();
  expectNorm(0.5);
}

TEST_P(GpuStream, WithoutAReleaseTheStreamWaits) {
  auto gradients = makeGradients(0.5);
  begin();
  deliver(gradients, /*but=*/{}, /*lent=*/false);
  for (const auto &[name, tensor] : gradients)
    write(tensor, -3);
  apply();
  expectNorm(0.5);
}

// Parameters are read by what is on the stream before apply, and as they are
// after it by what comes after parameter_wait.
TEST_P(GpuStream, ParametersChangeBetweenReads) {
  zero_rt_tensor view = {};
  view.struct_size = sizeof(view);
  const std::string name = "fc1.bias";
  rank->check(rank->calls().parameter(rank->step, rank->find(name), &view));
  zero_rt_tensor before = rank->makeTensor(view.elements, 0);
  zero_rt_tensor after = rank->makeTensor(view.elements, 0);
  auto gradients = makeGradients(0.5);
  begin();
  deliver(gradients);
  auto copyTo = [&](const zero_rt_tensor &tensor) {
    EXPECT_EQ(cuMemcpyAsync(addressOf(tensor.data), addressOf(view.data),
                            size_t(view.elements * 2), stream),
              0);
  };
  copyTo(before);
  apply();
  rank->check(rank->calls().parameter_wait(rank->step, -1, stream));
  copyTo(after);
  EXPECT_EQ(cuStreamSynchronize(stream), 0);
  auto read = [&](const zero_rt_tensor &tensor) {
    std::vector<uint16_t> values(tensor.elements);
    rank->check(zero_rt_copy(rank->runtime, values.data(), tensor.data,
                             tensor.elements * 2));
    return values;
  };
  EXPECT_EQ(read(before), std::vector<uint16_t>(view.elements, toBF16(1)));
  EXPECT_EQ(read(after), rank->getParameter(name));
  EXPECT_NE(read(after), read(before));
}

TEST_P(GpuStream, ATimepointOfTheFutureIsRefused) {
  EXPECT_EQ(zero_rt_stream_wait(rank->runtime, stream, 1000000),
            ZERO_RT_INVALID_ARGUMENT);
}

/// Gradients of f32, which are kept as they come and so have slots.
class GpuSlot : public GpuStream {
protected:
  void SetUp() override {
    library.isF32 = true;
    GpuStream::SetUp();
  }
  /// Asks for the slot of a parameter and queues a write of |value| to it.
  void writeSlot(const std::string &name, float value) {
    zero_rt_tensor slot = {};
    slot.struct_size = sizeof(slot);
    double beta = -1;
    rank->check(rank->calls().gradient_slot(rank->step, rank->find(name),
                                            stream, &slot, &beta));
    EXPECT_EQ(beta, 0);
    uint32_t bits = uint32_t(toBF16(value)) << 16;
    EXPECT_EQ(cuMemsetD32Async(addressOf(slot.data), bits,
                               size_t(slot.elements), stream),
              0);
  }
  void runBackward(float value) {
    begin();
    zero_rt_tensor zeros =
        rank->makeTensor(2 * kGpuElements.at("fc1.weight"), 0);
    zeros.dtype = ZERO_RT_F32;
    zeros.elements /= 2;
    for (const auto &[name, elements] : kGpuElements) {
      writeSlot(name, value);
      rank->check(
          rank->calls().gradient_ready(rank->step, rank->find(name), stream));
      if (getUses(name) == 2)
        rank->check(rank->calls().gradient(rank->step, rank->find(name), &zeros,
                                           stream, nullptr));
    }
  }
  /// The norm of gradients of one number in each element.
  void expectNormOfAll(float value) {
    double squares = 0;
    for (const auto &[name, elements] : kGpuElements)
      squares += double(elements) * value * value;
    EXPECT_FLOAT_EQ(float(rank->getResults().values[0]),
                    float(std::sqrt(squares)));
  }
};

TEST_P(GpuSlot, IsReadAfterItIsWritten) {
  runBackward(0.5);
  apply();
  expectNormOfAll(0.5);
}

// What the stream wrote to before is free only when it has written.
TEST_P(GpuSlot, IsKeptUntilItsWriterIsDone) {
  begin();
  delay();
  for (const auto &[name, elements] : kGpuElements)
    writeSlot(name, -3);
  rank->check(rank->calls().discard(rank->step));
  runBackward(0.5);
  apply();
  expectNormOfAll(0.5);
}

/// One bucket, which is reduced while the next backward pass has begun.
class GpuSlotInFlight : public GpuSlot {
protected:
  void SetUp() override {
    bucketBytes = 1 << 20;
    GpuSlot::SetUp();
  }
};

// Who writes to a slot waits for those who still read there.
TEST_P(GpuSlotInFlight, IsLentBehindTheReduction) {
  runBackward(0.5); // once, so that nothing is made while a stream is held
  apply();
  rank->getResults();
  int64_t second = 0;
  for (const fake::Call &call : fake::takeCalls())
    if (call.function == "cuMemcpyAsync") // the reduction of one rank is one
      second = std::max(second, call.stream);
  begin();
  for (const auto &[name, elements] : kGpuElements)
    writeSlot(name, 0.5);
  zero_rt_tensor zeros = rank->makeTensor(2 * kGpuElements.at("fc1.weight"), 0);
  zeros.dtype = ZERO_RT_F32;
  zeros.elements /= 2;
  fake::holdStream(second);
  for (const auto &[name, elements] : kGpuElements)
    rank->check(
        rank->calls().gradient_ready(rank->step, rank->find(name), stream));
  rank->check(rank->calls().gradient(rank->step, rank->find("fc1.weight"),
                                     &zeros, stream, nullptr));
  rank->check(rank->calls().accumulate(rank->step));
  begin();
  for (const auto &[name, elements] : kGpuElements)
    writeSlot(name, 2.5);
  // Whatever can be done is done.
  for (int i = 0; i < 1000; ++i)
    (void)cuStreamQuery(stream);
  fake::holdStream(-1);
  for (const auto &[name, elements] : kGpuElements)
    rank->check(
        rank->calls().gradient_ready(rank->step, rank->find(name), stream));
  rank->check(rank->calls().gradient(rank->step, rank->find("fc1.weight"),
                                     &zeros, stream, nullptr));
  apply();
  expectNormOfAll(3); // the caller has divided
}

INSTANTIATE_TEST_SUITE_P(Seeds, GpuSlotInFlight,
                         testing::Values(Case(1, 2, false), Case(2, 2, false)));
INSTANTIATE_TEST_SUITE_P(Seeds, GpuStream,
                         testing::Combine(testing::Range(1, 6),
                                          testing::Values(0, 2),
                                          testing::Bool()));
INSTANTIATE_TEST_SUITE_P(Seeds, GpuSlot,
                         testing::Combine(testing::Range(1, 6),
                                          testing::Values(0, 2),
                                          testing::Values(false)));

} // namespace
