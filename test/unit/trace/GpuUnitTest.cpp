//===- GpuUnitTest.cpp - Units of stage 3 beside the caller's work --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuOverlap.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace zero;
using namespace zero::test;

namespace {

constexpr const char *kReduces = "the gradients of fc2 are reduced";

/// Units fc1 and fc2, which the caller uses on a stream of its own.
class GpuUnits : public GpuOverlap {
protected:
  void SetUp() override {
    GpuOverlap::SetUp();
    if (IsSkipped())
      return;
    open(/*stage=*/3, offload, unitOrder);
    cuCtxPushCurrent_v2(fake::contextOf(0));
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
    rank->check(rank->calls().find_unit(rank->step, "fc1", &fc1));
    rank->check(rank->calls().find_unit(rank->step, "fc2", &fc2));
    runStep();
    unshard(fc2);
    collective = findLane(Together);
    rank->check(zero_rt_step_reshard(rank->step, fc2, stream));
  }
  void TearDown() override {
    fake::holdStream(-1);
    if (stream) {
      EXPECT_EQ(cuStreamSynchronize(stream), 0);
      EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
      cuCtxPopCurrent_v2(nullptr);
    }
    GpuOverlap::TearDown();
  }
  void unshard(int32_t unit) {
    rank->check(zero_rt_step_unshard(rank->step, unit, stream));
  }
  bool isQueued() {
    return llvm::any_of(fake::takeCalls(), [&](const fake::Call &call) {
      return call.stream == collective && call.function == "cuMemcpyAsync";
    });
  }
  /// Runs the backward pass of fc2, whose gradients are reduced while that of
  /// fc1 runs. Whether fc1 can be used meanwhile.
  bool useNextWhileReducing(bool ahead) {
    zero_rt_tensor bias = rank->makeTensor(10, 1);
    zero_rt_tensor weight = rank->makeTensor(640, 1);
    rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_UNKNOWN));
    unshard(fc2);
    if (ahead)
      rank->check(zero_rt_step_prefetch(rank->step, fc1));
    EXPECT_TRUE(hasPassed(stream)); // and so has what goes on beside it
    rank->check(rank->calls().gradient(rank->step, rank->find("fc2.bias"),
                                       &bias, stream, nullptr));
    rank->check(rank->calls().gradient(rank->step, rank->find("fc2.weight"),
                                       &weight, stream, nullptr));
    fake::holdStream(collective);
    fake::mark(kReduces);
    rank->check(zero_rt_step_reshard(rank->step, fc2, stream));
    unshard(fc1);
    return hasPassed(stream);
  }

  const char *unitOrder = "calls";
  const char *offload = "none";
  zero_rt_stream *stream = nullptr;
  int64_t collective = 0;
  int32_t fc1 = -1, fc2 = -1;
};

class GpuOrderedUnits : public GpuUnits {
protected:
  GpuOrderedUnits() { unitOrder = "declared"; }
};

class GpuOffloadedUnits : public GpuUnits {
protected:
  GpuOffloadedUnits() { offload = "parameters"; }
};

TEST_F(GpuUnits, TheNextUnitIsGatheredWhileTheCallerUsesOne) {
  unshard(fc1);
  EXPECT_TRUE(hasPassed(stream));
  fake::holdStream(collective);
  fake::takeCalls();
  rank->check(zero_rt_step_prefetch(rank->step, fc2));
  EXPECT_TRUE(isQueued());
  EXPECT_TRUE(hasPassed(stream));
  rank->check(zero_rt_step_reshard(rank->step, fc1, stream));
  fake::takeCalls();
  unshard(fc2);
  EXPECT_FALSE(isQueued()); // it was
  EXPECT_FALSE(hasPassed(stream));
  fake::holdStream(-1);
  EXPECT_TRUE(hasPassed(stream));
}

/// The stream on which a copy of the calls since the last look was queued.
static int64_t findCopy() {
  for (const fake::Call &call : fake::takeCalls())
    if (call.function == "cuMemcpyAsync")
      return call.stream;
  return -1;
}

// Its slice comes from the host on a stream that has nothing else to do.
TEST_F(GpuOffloadedUnits, TheNextUnitIsCopiedWhileTheCallerUsesOne) {
  fake::takeCalls();
  unshard(fc1);
  int64_t toDevice = findCopy();
  EXPECT_NE(toDevice, collective);
  EXPECT_TRUE(hasPassed(stream));
  fake::holdStream(toDevice);
  fake::takeCalls();
  rank->check(zero_rt_step_prefetch(rank->step, fc2));
  EXPECT_EQ(findCopy(), toDevice);
  EXPECT_TRUE(hasPassed(stream));
  rank->check(zero_rt_step_reshard(rank->step, fc1, stream));
  EXPECT_TRUE(hasPassed(stream));
  unshard(fc2);
  EXPECT_FALSE(hasPassed(stream));
  fake::holdStream(-1);
  EXPECT_TRUE(hasPassed(stream));
  rank->check(zero_rt_step_reshard(rank->step, fc2, stream));
  EXPECT_TRUE(fake::takeErrors().empty());
}

// Its gather waits for the reduction.
TEST_F(GpuOffloadedUnits, ASliceIsCopiedWhileGradientsAreReduced) {
  fake::takeCalls();
  unshard(fc1);
  int64_t toDevice = findCopy();
  rank->check(zero_rt_step_reshard(rank->step, fc1, stream));
  fake::takeCalls();
  EXPECT_FALSE(useNextWhileReducing(/*ahead=*/false));
  std::vector<fake::Call> calls = fake::takeCalls();
  auto reduces = llvm::find_if(
      calls, [](const fake::Call &call) { return call.function == kReduces; });
  ASSERT_NE(reduces, calls.end());
  std::set<const void *> behind; // events behind the reduction
  bool isCopied = false;
  for (const fake::Call &call : llvm::make_range(reduces, calls.end())) {
    if (call.function == "cuEventRecord" && call.stream == collective)
      behind.insert(call.event);
    if (call.function == "cuStreamWaitEvent" && call.stream == toDevice)
      EXPECT_EQ(behind.count(call.event), 0u);
    isCopied |= call.function == "cuMemcpyAsync" && call.stream == toDevice;
  }
  EXPECT_TRUE(isCopied);
  EXPECT_FALSE(behind.empty());
}

// The caller makes no call of prefetch.
TEST_F(GpuOrderedUnits, TheNextUnitIsGatheredWhileTheCallerUsesOne) {
  for (int32_t unit : {fc1, fc1}) { // the end of an order, and a forward pass
    unshard(unit);
    rank->check(zero_rt_step_reshard(rank->step, unit, stream));
  }
  fake::takeCalls();
  unshard(fc2);
  EXPECT_FALSE(isQueued()); // it was
  EXPECT_TRUE(hasPassed(stream));
  rank->check(zero_rt_step_reshard(rank->step, fc2, stream));
}
TEST_F(GpuOrderedUnits, ItIsGatheredBeforeTheReduction) {
  for (int32_t unit : {fc1, fc1, fc2}) {
    unshard(unit);
    rank->check(zero_rt_step_reshard(rank->step, unit, stream));
  }
  EXPECT_TRUE(useNextWhileReducing(/*ahead=*/false));
}

// Collectives have one order, so a unit that is gathered behind a reduction
// waits for it.
TEST_F(GpuUnits, AUnitGatheredAheadDoesNotWaitForAReduction) {
  EXPECT_TRUE(useNextWhileReducing(/*ahead=*/true));
}
TEST_F(GpuUnits, AUnitGatheredInTimeWaitsForAReduction) {
  EXPECT_FALSE(useNextWhileReducing(/*ahead=*/false));
}

// It is gathered anew when it is used.
TEST_F(GpuUnits, AUnitThatIsNotUsedIsNotOlderThanTheStep) {
  auto train = [&](bool ahead) {
    unshard(fc1);
    rank->check(zero_rt_step_reshard(rank->step, fc1, stream));
    if (ahead) {
      rank->check(zero_rt_step_prefetch(rank->step, fc1));
      rank->check(zero_rt_step_prefetch(rank->step, fc2));
    }
    runStep();
    rank->getResults();
    unshard(fc1);
    std::vector<uint16_t> weight = rank->getParameter("fc1.weight");
    rank->check(zero_rt_step_reshard(rank->step, fc1, stream));
    return weight;
  };
  std::vector<uint16_t> first = train(/*ahead=*/true);
  rank.reset();
  rank = std::make_unique<GpuRank>(library, group, 0);
  ASSERT_EQ(rank->create(), ZERO_RT_OK) << zero_rt_message();
  runStep(); // as SetUp
  std::vector<uint16_t> again = train(/*ahead=*/false);
  EXPECT_EQ(first, again);
  EXPECT_NE(again, train(/*ahead=*/false));
}

} // namespace
