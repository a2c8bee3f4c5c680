//===- BackwardsTest.cpp - Backward passes that are under way together ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/step.h"

#include <algorithm>
#include <random>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// A gradient of |backward|, without a release.
zero_rt_status passOf(zero_rt_step *step, int64_t backward, int32_t parameter,
                      float value = 1) {
  std::vector<float> data = trainGradient(parameter, value);
  zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, data);
  zero_rt_status status = callsOf(step).gradient_of(step, backward, parameter,
                                                    &tensor, nullptr, nullptr);
  std::fill(data.begin(), data.end(), -77.0f); // it has been taken
  return status;
}

int64_t stagingOf(zero_rt_step *step) {
  return countersOf(runtimeOf(step))
      .bytes_now[ZERO_RT_SPACE_DEVICE][ZERO_RT_ROLE_STAGING];
}

void bindAll(zero_rt_step *step) {
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    bindParameter(step, p, 100);
}

constexpr int64_t kBackwards = 4;
float valueOf(int32_t rank, int64_t backward, int32_t parameter) {
  return float((rank + 2) * (backward + 1) + parameter);
}

} // namespace

// Whatever the order, a step with several backward passes under way is the step
// with one after the other.
TEST(Backwards, TheirOrderDoesNotMatter) {
  LibraryBuilder library = makeTrainStep(2);
  std::vector<uint16_t> expected[2];
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    bindAll(step);
    for (int64_t b = 0; b < kBackwards; ++b) {
      expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_UNKNOWN));
      for (int32_t p = 0; p < NumTrainParameters; ++p)
        if (p != Extra || b != 1) // it is optional
          expectOk(passPieces(step, p, valueOf(rank, b, p)));
      if (b + 1 < kBackwards)
        expectOk(callsOf(step).accumulate(step));
    }
    expectOk(applyStep(step, 0.25));
    expected[rank] = parameterBits(step);
  });
  for (unsigned seed = 0; seed < 50; ++seed)
    runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
      std::mt19937 random(seed * 2 + unsigned(rank));
      bindAll(step);
      // A step before, so that numbers begin anew.
      expectOk(passOf(step, 0, Weight, 0));
      expectOk(callsOf(step).discard(step));
      std::vector<std::pair<int64_t, int32_t>> gradients;
      for (int64_t b = 0; b < kBackwards; ++b)
        for (int32_t p = 0; p < NumTrainParameters; ++p)
          if (p != Extra || b != 1)
            gradients.insert(gradients.end(), p == Tied ? 2 : 1, {b, p});
      std::shuffle(gradients.begin(), gradients.end(), random);
      std::vector<int64_t> left(kBackwards, NumTrainParameters + 1);
      --left[1];
      bool isTiedPassed[kBackwards] = {};
      for (auto [b, p] : gradients) {
        bool isZero = p == Tied && std::exchange(isTiedPassed[b], true);
        expectOk(passOf(step, b, p, isZero ? 0 : valueOf(rank, b, p)));
        // The last may be left to apply.
        if (--left[size_t(b)] == 0 && (b + 1 < kBackwards || seed % 2))
          expectOk(callsOf(step).end_backward(step, b));
      }
      EXPECT_EQ(stagingOf(step), 0);
      expectOk(applyStep(step, 0.25));
      EXPECT_EQ(parameterBits(step), expected[rank]) << seed;
      auto results = sized<zero_rt_results>();
      expectOk(callsOf(step).results(step, &results));
      EXPECT_EQ(results.backwards, kBackwards);
    });
}

// A gradient of a later backward pass waits in our memory, or where it lies.
TEST(Backwards, ALaterGradientWaits) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(passOf(step, 0, Weight));
    EXPECT_EQ(stagingOf(step), 0);
    expectOk(passOf(step, 1, Weight));
    EXPECT_EQ(stagingOf(step), trainSizes[Weight] * 4);
    std::vector<float> data = trainGradient(Bias, 1);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, data);
    zero_rt_timepoint release = 0;
    expectOk(calls.gradient_of(step, 1, Bias, &tensor, nullptr, &release));
    EXPECT_NE(release, 0u);
    EXPECT_EQ(stagingOf(step), trainSizes[Weight] * 4);
    expectStatus(ZERO_RT_PROTOCOL, zero_rt_wait(runtimeOf(step), release),
                 "is the release of a gradient");
    expectOk(calls.end_backward(step, 0));
    // It is open now.
    expectOk(zero_rt_wait(runtimeOf(step), release));
    EXPECT_EQ(stagingOf(step), 0);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.gradient_of(step, 1, Tied, &tensor, nullptr, &release),
                 "'tied' has 3 elements, expected 4");
    EXPECT_EQ(release, 0u);
  });
}

TEST(Backwards, RefusesWhatIsOutOfTurn) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, passOf(step, -1, Weight),
                 "gradient_of: backward pass is -1, expected 0 to 1024");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, passOf(step, 1025, Weight),
                 "at most 1024 more than the open one");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.end_backward(step, 5000),
                 "end_backward: backward pass is 5000, expected 0 to 1024");
    expectOk(passOf(step, 0, Weight));
    expectOk(passOf(step, 2, Weight));
    expectStatus(
        ZERO_RT_PROTOCOL, passOf(step, 0, Weight),
        "gradient of 'fc1.weight' arrived 2 times in this backward pass, "
        "declared 1");
    expectStatus(
        ZERO_RT_PROTOCOL, passOf(step, 2, Weight),
        "gradient of 'fc1.weight' arrived 2 times in this backward pass, "
        "declared 1");
    expectOk(calls.end_backward(step, 0));
    for (zero_rt_status status :
         {passOf(step, 0, Bias), calls.end_backward(step, 0)})
      expectStatus(ZERO_RT_PROTOCOL, status,
                   "backward pass 0 has ended; backward passes are numbered "
                   "from 0 after each "
                   "apply");
    expectStatus(
        ZERO_RT_PROTOCOL, applyStep(step),
        "apply: backward pass 2 has begun, and backward pass 1 has not ended; "
        "call end_backward for it first");
    expectOk(calls.end_backward(step, 2));
    expectStatus(ZERO_RT_PROTOCOL, passOf(step, 2, Bias), "has ended");
    expectOk(calls.end_backward(step, 1));
    // It is open, and has ended all the same.
    expectStatus(ZERO_RT_PROTOCOL, passGradient(step, Bias),
                 "gradient: backward pass 2 has ended");
    expectOk(calls.discard(step));
    EXPECT_EQ(stagingOf(step), 0);
  });
}

// What is missing is told with the backward pass that it is missing in.
TEST(Backwards, AMissingGradientIsThatOfItsBackward) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (int64_t b : {1, 0, 2})
      for (int32_t p : {Weight, Bias, Tied, Tied})
        if (p != Bias || b != 1)
          expectOk(passOf(step, b, p));
    for (int64_t b : {1, 0})
      expectOk(calls.end_backward(step, b));
    expectOk(applyStep(step));
    auto results = sized<zero_rt_results>();
    expectStatus(ZERO_RT_MISSING_GRADIENT, calls.results(step, &results),
                 "'fc1.bias'");
    EXPECT_NE(std::string(zero_rt_message()).find("backward pass 2"),
              std::string::npos)
        << zero_rt_message();
  });
}

// Ranks that drop what they have named have reduced the same; afterwards all is
// as if it had never been.
TEST(Backwards, AreDroppedTogether) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    bindAll(step);
    std::vector<uint16_t> before = parameterBits(step);
    // One rank has not ended the first, the other both.
    expectOk(passOf(step, 1, Weight, 3));
    expectOk(passOf(step, 0, Bias, 3));
    if (rank == 1)
      for (int64_t b : {0, 1})
        expectOk(calls.end_backward(step, b));
    expectOk(calls.discard(step));
    EXPECT_EQ(stagingOf(step), 0);
    EXPECT_EQ(parameterBits(step), before);
    for (int32_t p : {Weight, Bias, Tied, Tied})
      expectOk(passOf(step, 0, p, p == Tied ? 0.5f : 1));
    expectOk(applyStep(step));
    auto results = sized<zero_rt_results>();
    expectOk(calls.results(step, &results));
    EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
    EXPECT_EQ(results.backwards, 1);
  });
}

// Numbers and the calls without them count the same backward passes.
TEST(Backwards, NumbersMayBeginLate) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    passAll(step);
    expectOk(passOf(step, 1, Weight));
    expectOk(calls.accumulate(step));
    for (int32_t p : {Bias, Tied, Tied})
      expectOk(passOf(step, 1, p));
    expectOk(applyStep(step));
    auto results = sized<zero_rt_results>();
    expectOk(calls.results(step, &results));
    EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
    EXPECT_EQ(results.backwards, 2);
    // A waiting one is not lost where the caller closes the one before.
    expectOk(calls.begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    passAll(step);
    for (int32_t p : {Weight, Bias, Tied, Tied})
      expectOk(passOf(step, 1, p));
    expectOk(calls.accumulate(step));
    expectOk(applyStep(step));
    expectOk(calls.results(step, &results));
    EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
    EXPECT_EQ(results.backwards, 2);
  });
}
