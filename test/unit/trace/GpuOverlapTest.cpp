//===- GpuOverlapTest.cpp - What goes on while ranks are together ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuOverlap.h"

#include "llvm/ADT/STLExtras.h"

using namespace zero;
using namespace zero::test;

namespace {

/// A stage, what is said where a backward pass begins, and whether buckets are
/// reduced while it goes on.
struct Reduction {
  int64_t stage;
  zero_rt_hint hint;
  bool isEarly;
};

class GpuEarlyReduction : public GpuOverlap,
                          public testing::WithParamInterface<Reduction> {};

// A bucket is reduced when it is complete: at stage 2 always, before that where
// the backward pass is said to be the last. Later gradients are packed
// meanwhile, and their memory given back.
TEST_P(GpuEarlyReduction, BackwardGoesOnWhileABucketIsReduced) {
  open(GetParam().stage);
  runStep();
  int64_t second = findLane(Together);
  // The tensors first: a copy from the host may wait for all.
  zero_rt_tensor bias = rank->makeTensor(10, 1);
  zero_rt_tensor weight = rank->makeTensor(640, 1);
  zero_rt_timepoint releases[2] = {};
  rank->check(rank->calls().begin_backward(rank->step, GetParam().hint));
  fake::holdStream(second);
  rank->check(rank->calls().gradient(rank->step, rank->find("fc2.bias"), &bias,
                                     nullptr, &releases[0]));
  rank->check(rank->calls().gradient(rank->step, rank->find("fc2.weight"),
                                     &weight, nullptr, &releases[1]));
  // It has been reduced, as far as the calls go.
  bool isQueued = llvm::any_of(fake::takeCalls(), [&](const fake::Call &call) {
    return call.stream == second && (call.function == "cuMemcpyAsync" ||
                                     call.function == "cuLaunchKernel");
  });
  EXPECT_EQ(isQueued, GetParam().isEarly);
  for (zero_rt_timepoint release : releases)
    rank->check(zero_rt_wait(rank->runtime, release));
  EXPECT_TRUE(fake::takeErrors().empty());
}

// What touches a bucket that is being reduced waits for that.
TEST_P(GpuEarlyReduction, TheNextBackwardWaitsForABucketThatIsReduced) {
  open(GetParam().stage);
  runStep();
  int64_t second = findLane(Together);
  zero_rt_tensor bias = rank->makeTensor(10, 1);
  rank->check(rank->calls().begin_backward(rank->step, GetParam().hint));
  fake::holdStream(second);
  rank->check(rank->calls().gradient(rank->step, rank->find("fc2.bias"), &bias,
                                     nullptr, nullptr));
  rank->check(rank->calls().accumulate(rank->step));
  rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_UNKNOWN));
  zero_rt_timepoint release = 0;
  rank->check(rank->calls().gradient(rank->step, rank->find("fc2.bias"), &bias,
                                     nullptr, &release));
  rank->check(zero_rt_wait(rank->runtime, release));
  std::vector<std::string> expected;
  if (GetParam().isEarly)
    expected.push_back("streams wait for each other");
  EXPECT_EQ(fake::takeErrors(), expected);
}

std::string nameOf(const testing::TestParamInfo<Reduction> &info) {
  const char *hint = info.param.hint == ZERO_RT_HINT_LAST   ? "last"
                     : info.param.hint == ZERO_RT_HINT_MORE ? "more"
                                                            : "";
  return "stage" + std::to_string(info.param.stage) + hint;
}

INSTANTIATE_TEST_SUITE_P(
    Stages, GpuEarlyReduction,
    testing::Values(Reduction{2, ZERO_RT_HINT_UNKNOWN, true},
                    Reduction{1, ZERO_RT_HINT_LAST, true},
                    Reduction{1, ZERO_RT_HINT_UNKNOWN, false},
                    Reduction{1, ZERO_RT_HINT_MORE, false}),
    nameOf);

// Buckets are gathered one after the other. A parameter is there when its own
// is, and all are when the last is.
TEST_F(GpuOverlap, AParameterWaitsForItsOwnBucket) {
  open(/*stage=*/1);
  runStep();
  int64_t second = findLane(Together);
  cuCtxPushCurrent_v2(fake::contextOf(0));
  zero_rt_stream *streams[3] = {};
  for (zero_rt_stream *&stream : streams)
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
  rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_UNKNOWN));
  // Only that the last bucket has been gathered does not happen.
  fake::holdStream(second, /*last=*/1);
  apply();
  auto wait = [&](int32_t parameter, zero_rt_stream *stream) {
    rank->check(rank->calls().parameter_wait(rank->step, parameter, stream));
  };
  wait(rank->find("fc2.bias"), streams[0]);   // in the first one
  wait(rank->find("fc1.weight"), streams[1]); // in the last one
  wait(-1, streams[2]);
  EXPECT_TRUE(hasPassed(streams[0]));
  EXPECT_FALSE(hasPassed(streams[1]));
  EXPECT_FALSE(hasPassed(streams[2]));
  fake::holdStream(-1);
  for (zero_rt_stream *stream : streams) {
    EXPECT_EQ(cuStreamSynchronize(stream), 0);
    EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
  }
  cuCtxPopCurrent_v2(nullptr);
}

// Gradients go to the host, buckets are updated there and come back, one while
// the other: nothing waits for what it does not need.
TEST_F(GpuOverlap, UpdatesGoOnWhileParametersAreCopiedBack) {
  open(/*stage=*/1, "optimizer");
  runStep();
  int64_t back = findLane(ToDevice);
  cuCtxPushCurrent_v2(fake::contextOf(0));
  zero_rt_stream *stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
  rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_UNKNOWN));
  fake::holdStream(back);
  apply();
  // The results come behind all updates but the last two.
  EXPECT_EQ(waitForResults(), ZERO_RT_MISSING_GRADIENT);
  rank->check(
      rank->calls().parameter_wait(rank->step, rank->find("fc2.bias"), stream));
  EXPECT_FALSE(hasPassed(stream));
  fake::holdStream(-1);
  EXPECT_TRUE(hasPassed(stream));
  EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
  cuCtxPopCurrent_v2(nullptr);
  EXPECT_TRUE(fake::takeErrors().empty());
}

TEST_F(GpuOverlap, GradientsAreCopiedWhileTheProcessorUpdates) {
  open(/*stage=*/1, "optimizer");
  runStep();
  int64_t host = findLane(Host);
  rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_UNKNOWN));
  // The last two buckets are not updated, which is what these calls are for;
  // their gradients have been copied all the same.
  fake::takeCalls();
  fake::holdStream(host, /*last=*/18);
  apply();
  EXPECT_EQ(waitForResults(), ZERO_RT_MISSING_GRADIENT);
  int64_t updates = llvm::count_if(fake::takeCalls(), [&](const auto &call) {
    return call.stream == host && call.function == "cuLaunchHostFunc";
  });
  EXPECT_EQ(updates, 4);
  fake::holdStream(-1);
  EXPECT_TRUE(fake::takeErrors().empty());
}

// The scalars of the next step do not get to the processor before it is there,
// however late that is.
TEST_F(GpuOverlap, TheProcessorSeesTheScalarsOfItsStep) {
  // At stage 0: nothing is gathered, for which the next step would wait.
  open(/*stage=*/0, "optimizer");
  auto runTwoSteps = [&](bool isLate) {
    runStep();
    int64_t host = findLane(Host);
    // The tensors first: a copy from the host may wait for all.
    std::map<std::string, zero_rt_tensor> tensors;
    for (const auto &[name, elements] : kGpuElements)
      tensors[name] = rank->makeTensor(elements, 1);
    for (double rate : {1.0, 1024.0}) {
      rank->check(rank->calls().begin_backward(rank->step, ZERO_RT_HINT_LAST));
      for (auto &[name, tensor] : tensors)
        for (int use = 0; use < (name == "fc1.weight" ? 2 : 1); ++use) {
          zero_rt_timepoint release = 0;
          rank->check(rank->calls().gradient(rank->step, rank->find(name),
                                             &tensor, nullptr, &release));
        }
      if (isLate)
        fake::holdStream(host);
      rank->check(rank->calls().apply(rank->step, &rate, 1, nullptr));
    }
    if (isLate) {
      // All else goes on as far as it can.
      cuCtxPushCurrent_v2(fake::contextOf(0));
      zero_rt_stream *stream = nullptr;
      EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
      rank->check(rank->calls().parameter_wait(rank->step, -1, stream));
      EXPECT_FALSE(hasPassed(stream));
      fake::holdStream(-1);
      EXPECT_EQ(cuStreamSynchronize(stream), 0);
      EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
      cuCtxPopCurrent_v2(nullptr);
    }
    rank->getResults();
    std::vector<uint16_t> all;
    for (const auto &[name, elements] : kGpuElements)
      llvm::append_range(all, rank->getParameter(name));
    return all;
  };
  std::vector<uint16_t> expected = runTwoSteps(/*isLate=*/false);
  rank.reset();
  rank = std::make_unique<GpuRank>(library, group, 0);
  ASSERT_EQ(rank->create(), ZERO_RT_OK) << zero_rt_message();
  EXPECT_EQ(runTwoSteps(/*isLate=*/true), expected);
  EXPECT_TRUE(fake::takeErrors().empty());
}

} // namespace
