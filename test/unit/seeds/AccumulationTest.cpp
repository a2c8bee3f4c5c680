//===- AccumulationTest.cpp - #7981 and #7985: nothing is lost ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two reports of gradients lost while accumulating. The expected numbers are
// exact in every type involved, so they are compared as they are; beside each
// stands what the reported bug gives.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <cmath>

using namespace zero;
using namespace zero::test;

namespace {
class Accumulation : public testing::TestWithParam<Way> {};

Backward gradient(double value) { return {{"w", {value}}}; }
} // namespace

// Report #7985: four micro-batches, two ranks, g(m, r) = e_(2m+r), the mean
// over both. The bug adds the last micro-batch after the all-reduce: rank r
// then has 1/4 at 6 + r and 0 at the other, and a norm of 0.3952847.
TEST_P(Accumulation, LastMicroBatchIsReduced) {
  StepText text;
  text.weight = "accumulation : -1, dp : -1";
  text.parameters = {{"w", 8, ""}};
  Step step(text, GetParam());
  Window ranks(2);
  for (int r = 0; r < 2; ++r)
    for (int m = 0; m < 4; ++m) {
      std::vector<double> oneHot(8, 0.0);
      oneHot[2 * m + r] = 1.0;
      ranks[r].push_back({{"w", oneHot}});
    }
  auto result = step.apply(1.0, ranks);
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(step.get("w"), std::vector<double>(8, -0.125));
  EXPECT_DOUBLE_EQ(result->values[0], std::sqrt(0.125));
}

// Report #7981: two ranks, four backward passes, g = 2^(k+4r), the sum over
// backward passes and the mean over ranks: 127.5. The last one only gives 68;
// the first and the last (#6550) 76.5.
TEST_P(Accumulation, EveryBackwardCounts) {
  Step step(StepText(), GetParam());
  Window ranks(2);
  for (int r = 0; r < 2; ++r)
    for (int k = 0; k < 4; ++k)
      ranks[r].push_back(gradient(std::ldexp(1.0, k + 4 * r)));
  auto result = step.apply(1.0 / 128, ranks);
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->backwards, 4);
  EXPECT_EQ(result->values[0], 127.5);
  EXPECT_EQ(step.get("w")[0], -0.99609375);

  // Nothing leaks into the next step, which has one backward pass.
  result = step.apply(1.0 / 128, {{gradient(32)}, {gradient(32)}});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->values[0], 32.0);
  EXPECT_EQ(step.get("w")[0], -0.99609375 - 0.25);
}

// 1, 4, 2, 7 and 1 backward passes in consecutive steps leak nothing into each
// other.
TEST_P(Accumulation, CountsMayChangeFromStepToStep) {
  Step step(StepText(), GetParam());
  double expected = 0;
  for (int count : {1, 4, 2, 7, 1}) {
    Window ranks(2);
    for (int r = 0; r < 2; ++r)
      for (int k = 0; k < count; ++k)
        ranks[r].push_back(gradient(k + 1));
    auto result = step.apply(1.0, ranks);
    ASSERT_TRUE(mlir::succeeded(result));
    EXPECT_EQ(result->values[0], count * (count + 1) / 2.0) << count;
    expected -= count * (count + 1) / 2.0;
    EXPECT_EQ(step.get("w")[0], expected) << count;
  }
}

// Adam's first step is blind to scale, so its moments are checked: m = 0.1 g
// and v = 0.001 g^2, in f32.
TEST_P(Accumulation, MomentsSeeTheWholeSum) {
  StepText text;
  text.optimizer = "adamw";
  Step step(text, GetParam());
  Window ranks(2);
  for (int r = 0; r < 2; ++r)
    for (int k = 0; k < 4; ++k)
      ranks[r].push_back(gradient(std::ldexp(1.0, k + 4 * r)));
  ASSERT_TRUE(mlir::succeeded(step.apply(1e-3, ranks)));
  // A few roundings of f32.
  EXPECT_NEAR(step.getState("m", "w")[0], 12.75, 12.75 * 4 * 0x1p-24);
  EXPECT_NEAR(step.getState("v", "w")[0], 16.25625, 16.25625 * 8 * 0x1p-24);
}

// [256, 1, 1, 1] is 259 in an f32 accumulator.
TEST_P(Accumulation, AccumulatesInTheDeclaredType) {
  Step step(StepText(), GetParam());
  std::vector<Backward> backwards{gradient(256), gradient(1), gradient(1),
                                  gradient(1)};
  auto result = step.apply(1.0, {backwards, backwards});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->values[0], 259.0);
}

// An optional parameter that is absent in the first backward pass and present
// in the second is not added to garbage.
TEST_P(Accumulation, OptionalParameterMayComeLate) {
  StepText text;
  text.parameters = {{"w", 40, ""}, {"expert", 3, "optional"}};
  Step step(text, GetParam());
  std::vector<double> w(40, 2.0);
  Backward first{{"w", w}};
  Backward second{{"w", w}, {"expert", {1.0, 2.0, 4.0}}};
  ASSERT_TRUE(mlir::succeeded(
      step.apply(1.0, {{first, second, first}, {first, first, second}})));
  EXPECT_EQ(step.get("w"), std::vector<double>(40, -6.0));
  EXPECT_EQ(step.get("expert"), (std::vector<double>{-1.0, -2.0, -4.0}));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Accumulation, testing::ValuesIn(getWays()),
                         nameOf);
