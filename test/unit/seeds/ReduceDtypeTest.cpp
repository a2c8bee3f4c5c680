//===- ReduceDtypeTest.cpp - Addends that travel as bf16 ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// bf16 has 8 bits: of 256 and 1 it holds both, and not their sum.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <cmath>

using namespace zero;
using namespace zero::test;

namespace {
class Wire : public testing::TestWithParam<Way> {
protected:
  void start(const std::string &wire, int64_t elements) {
    StepText text;
    text.weight = "";
    text.arrival = "f32";
    text.wire = wire;
    text.parameters = {{"w", elements, ""}};
    step = std::make_unique<Step>(text, GetParam());
  }
  bool isExact() { return GetParam().how == How::logical; }
  bool isInLoop() { return GetParam().stage >= 2; }
  /// What one step with rate 1 subtracts.
  std::vector<double> apply(const Window &window) {
    mlir::FailureOr<StepResult> result = step->apply(1, window);
    EXPECT_TRUE(mlir::succeeded(result) && result->outcome == Outcome::applied);
    std::vector<double> sum = step->get("w");
    for (double &value : sum)
      value = -value;
    return sum;
  }

  std::unique_ptr<Step> step;
};
} // namespace

// Rank 0 adds 257, which travels as 256, and rank 1 adds 1: 257. What
// frameworks do with a bf16 sum is 256, and nothing is rounded without a wire
// type: 258. Of 1 and 256 nothing is lost in f32.
TEST_P(Wire, RoundsAddendsAndNotSums) {
  Window window = {{{{"w", {257, 1}}}}, {{{"w", {1, 256}}}}};
  start("bf16", 2);
  EXPECT_EQ(apply(window), (std::vector<double>{isExact() ? 258. : 257., 257}));
  start("", 2);
  EXPECT_EQ(apply(window), (std::vector<double>{258, 257}));
}

// 129 and 128 are sent as they are where each backward pass is reduced, and
// else as their sum, 257.
TEST_P(Wire, RoundsWhatIsReduced) {
  start("bf16", 1);
  Window window = {{{{"w", {129}}}, {{"w", {128}}}},
                   {{{"w", {0}}}, {{"w", {0}}}}};
  double expected = isExact() || isInLoop() ? 257 : 256;
  EXPECT_EQ(apply(window), std::vector<double>{expected});
}

// Where each backward pass is rounded the error can be larger than that of
// their sum: 257 - 255 is 2, and 256 - 255 is 1. The bound of the logical step
// holds for both.
TEST_P(Wire, TheBoundHoldsForEachPlaceOfTheReduction) {
  start("bf16", 1);
  Window window = {{{{"w", {257}}}, {{"w", {-255}}}},
                   {{{"w", {0}}}, {{"w", {0}}}}};
  EXPECT_EQ(apply(window), std::vector<double>{isInLoop() ? 1. : 2.});
  if (isExact()) {
    Number number = step->getNumbers("w")[0];
    EXPECT_GE(number.bound, 1);
    EXPECT_LE(number.bound, 4);
  }
}

// As f16 a number above 65504 is none; the step is skipped on all ranks.
TEST_P(Wire, WhatTheWireCannotHoldIsNotFinite) {
  start("f16", 1);
  Window window = {{{{"w", {1e5}}}}, {{{"w", {1}}}}};
  mlir::FailureOr<StepResult> result = step->apply(1, window);
  ASSERT_TRUE(mlir::succeeded(result));
  if (isExact()) {
    // In f64 nothing is rounded, and the bound says that it may be anything.
    EXPECT_EQ(step->get("w"), std::vector<double>{-100001});
    EXPECT_TRUE(std::isinf(step->getNumbers("w")[0].bound));
    return;
  }
  EXPECT_EQ(result->outcome, Outcome::skipped_nonfinite);
  EXPECT_EQ(step->get("w"), std::vector<double>{0});
}

INSTANTIATE_TEST_SUITE_P(Ways, Wire, testing::ValuesIn(getWays()), nameOf);
