//===- GpuOverlapTest.cpp - What goes on while ranks are together ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stream of collectives is held, as by ranks that are slow: what does not
// need them must be done all the same.
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "GpuRank.h"
#include "zero_rt/step.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace zero;
using namespace zero::test;

namespace {

/// One rank, whose collectives run on a stream as those of more do.
class GpuOverlap : public GpuTest {
protected:
  void open(int stage, const std::string &offload = "none",
            const std::string &unitOrder = "calls") {
    LowerOptions options;
    options.mesh = "dp=1";
    options.stage = stage;
    options.offload = offload;
    options.unitOrder = unitOrder;
    options.bucketBytes = 1; // one for each parameter
    library.hasUnits = stage == 3;
    GpuTest::open(options);
    ASSERT_EQ(zero_rt_local_group_create(1, &group), ZERO_RT_OK);
    rank = std::make_unique<GpuRank>(library, group, 0);
    ASSERT_EQ(rank->create(), ZERO_RT_OK) << zero_rt_message();
  }
  void TearDown() override {
    fake::holdStream(-1);
    rank.reset();
    GpuTest::TearDown();
  }
  enum Lane { Compute, Together, ToHost, Host, ToDevice };
  /// The number of the stream of |lane|. Waits for all that was queued.
  int64_t findLane(Lane lane) {
    rank->getResults();
    fake::takeCalls();
    rank->getParameter("fc2.bias");
    std::set<int64_t> streams;
    for (const fake::Call &call : fake::takeCalls())
      if (call.function == "cuStreamSynchronize")
        streams.insert(call.stream);
    EXPECT_EQ(streams.size(), 5u); // made in this order
    return *std::next(streams.begin(), lane);
  }
  void apply() {
    double rate = 1;
    rank->check(rank->calls().apply(rank->step, &rate, 1, nullptr));
  }
  zero_rt_status waitForResults() {
    zero_rt_results results = {};
    results.struct_size = sizeof(results);
    return rank->calls().results(rank->step, &results);
  }
  /// Whether what came to |stream| has happened, if it can.
  bool hasPassed(zero_rt_stream *stream) {
    for (int i = 0; i < 1000; ++i)
      (void)cuStreamQuery(stream);
    return cuStreamQuery(stream) == 0;
  }
  void deliver(const std::string &name, zero_rt_timepoint *release) {
    zero_rt_tensor tensor = rank->makeTensor(kGpuElements.at(name), 1);
    rank->check(rank->calls().gradient(rank->step, rank->find(name), &tensor,
                                       nullptr, release));
  }
  void runStep() {
    rank->run(
        {"fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "fc1.weight"});
  }

  std::unique_ptr<GpuRank> rank;
};

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

/// Units fc1 and fc2, which the caller uses on a stream of its own.
class GpuUnits : public GpuOverlap {
protected:
  void SetUp() override {
    GpuOverlap::SetUp();
    if (IsSkipped())
      return;
    open(/*stage=*/3, "none", unitOrder);
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
    rank->check(zero_rt_step_reshard(rank->step, fc2, stream));
    unshard(fc1);
    return hasPassed(stream);
  }

  const char *unitOrder = "calls";
  zero_rt_stream *stream = nullptr;
  int64_t collective = 0;
  int32_t fc1 = -1, fc2 = -1;
};

class GpuOrderedUnits : public GpuUnits {
protected:
  GpuOrderedUnits() { unitOrder = "declared"; }
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
