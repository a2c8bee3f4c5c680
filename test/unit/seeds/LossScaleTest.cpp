//===- LossScaleTest.cpp - What fp16 needs, in exact numbers --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller multiplies gradients by the scale that it is told, and the step
// divides it out again. What must come out, with the arithmetic beside it, and
// what known bugs made of it.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <limits>

using namespace zero;
using namespace zero::test;

namespace {
using Values = std::vector<double>;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::string
getRule(const std::string &name,
        const std::vector<std::pair<std::string, std::string>> &numbers) {
  return replaceWords(getLossScale(name), numbers);
}

/// Half as much after an overflow, twice as much after every other step.
std::string getQuickRule(const std::string &initial = "4.0") {
  return getRule("torch", {{"65536.0", initial}, {"2000.0", "2.0"}});
}

class LossScale : public testing::TestWithParam<Way> {
protected:
  void start(StepText text) {
    ranks = text.ranks;
    step = std::make_unique<Step>(text, GetParam());
  }
  double getScale() { return step->getEngine().getLossScale(); }
  /// One step with rate 1 of the true gradient |values| on each rank.
  StepResult apply(const Values &values) {
    Window window(ranks);
    for (int r = 0; r < ranks; ++r) {
      Values scaled = values;
      for (double &value : scaled)
        value *= getScale();
      window[r].push_back({{"w", scaled}});
    }
    return applyWindow(window);
  }
  StepResult applyWindow(const Window &window) {
    mlir::FailureOr<StepResult> result = step->apply(1, window);
    EXPECT_TRUE(mlir::succeeded(result));
    return mlir::succeeded(result) ? *result : StepResult();
  }

  int64_t ranks = 0;
  std::unique_ptr<Step> step;
};
} // namespace

// Overflows in steps 4, 5 and 10. After an overflow PyTorch's rule halves at
// once; DeepSpeed's uses up hysteresis first, and does not count the first
// clean step.
TEST_P(LossScale, FollowsItsRule) {
  struct {
    std::string rule;
    std::vector<double> expected;
  } cases[] = {{getRule("torch", {{"65536.0", "256.0"}, {"2000.0", "2.0"}}),
                {256, 512, 512, 256, 128, 128, 256, 256, 512, 256}},
               {getRule("deepspeed", {{"65536.0", "256.0"}, {"1000.0", "2.0"}}),
                {256, 256, 512, 512, 256, 256, 256, 512, 512, 512}},
               {getRule("static", {{"1024.0", "256.0"}}), Values(10, 256)}};
  for (auto &[rule, expected] : cases) {
    StepText text;
    text.lossScale = rule;
    start(text);
    for (int i = 0; i < 10; ++i) {
      bool overflows = i == 3 || i == 4 || i == 9;
      StepResult result = apply({overflows ? kInfinite : 1.0});
      EXPECT_EQ(result.outcome,
                overflows ? Outcome::skipped_nonfinite : Outcome::applied)
          << result.message;
      EXPECT_EQ(getScale(), expected[i]) << "after step " << i + 1;
    }
  }
}

// True gradient 1, rate 1: each applied step subtracts 1, and also the one
// after which the scale grows from 4 to 8. Divided by the scale that follows it
// would subtract 0.5.
TEST_P(LossScale, IsDividedOutByTheVersionThatMultiplied) {
  StepText text;
  text.lossScale = getQuickRule();
  start(text);
  apply({1});
  EXPECT_EQ(getScale(), 4);
  StepResult grows = apply({1});
  EXPECT_EQ(getScale(), 8);
  EXPECT_EQ(grows.values[0], 1);
  EXPECT_EQ(step->get("w")[0], -2);
  // An overflow, which changes nothing but the scale, and the step after it.
  EXPECT_EQ(apply({kInfinite}).outcome, Outcome::skipped_nonfinite);
  EXPECT_EQ(step->get("w")[0], -2);
  EXPECT_EQ(getScale(), 4);
  EXPECT_EQ(apply({1}).values[0], 1);
  EXPECT_EQ(step->get("w")[0], -3);
}

// S = 65536, true gradient (3, 4), largest norm 2.5: the norm is 5, and what is
// applied has norm 2.5. A norm of scaled gradients would be 327680 and clip
// nearly everything away.
TEST_P(LossScale, IsNotInTheNorm) {
  StepText text;
  text.parameters = {{"w", 2, ""}};
  text.arrival = "f32";
  text.lossScale = getLossScale("torch");
  text.maxNorm = 2.5;
  start(text);
  StepResult result = apply({3, 4});
  EXPECT_EQ(result.values[0], 5);
  double coefficient = 2.5 / (5 + 1e-6);
  EXPECT_NEAR(step->get("w")[0], -3 * coefficient, 3 * 0x1p-23);
  EXPECT_NEAR(step->get("w")[1], -4 * coefficient, 4 * 0x1p-23);
}

// AdamW with rate 1e-3 and gradient 1 in three steps, the second of which
// overflows: two are applied, and the counter of powers of beta with them. If
// it advanced on the skipped step, p would be -0.00185846.
TEST_P(LossScale, SkipsAdvanceNoCounter) {
  StepText text;
  text.optimizer = "adamw";
  text.lossScale = getQuickRule();
  start(text);
  for (double gradient : {1.0, kInfinite, 1.0}) {
    Window window(2, {{{"w", {gradient * getScale()}}}});
    ASSERT_TRUE(mlir::succeeded(step->apply(1e-3, window)));
  }
  EXPECT_NEAR(step->get("w")[0], -0.002, 1e-9);
}

// Where nothing overflows a scale that changes leaves the bits of one that does
// not: powers of two move exponents only.
TEST_P(LossScale, LeavesNoTrace) {
  StepText text;
  text.optimizer = "adamw";
  text.lossScale = getQuickRule();
  start(text);
  StepText fixed = text;
  fixed.lossScale = getLossScale("static");
  Step other(fixed, GetParam());
  for (int i = 0; i < 6; ++i) {
    double gradient = 1.0 / (i + 3);
    Window window(2, {{{"w", {gradient * getScale()}}}});
    Window same(2, {{{"w", {gradient * 1024}}}});
    ASSERT_TRUE(mlir::succeeded(step->apply(1e-3, window)));
    ASSERT_TRUE(mlir::succeeded(other.apply(1e-3, same)));
    EXPECT_EQ(step->get("w"), other.get("w"));
  }
  EXPECT_NE(getScale(), 1024);
}

// One rank of four overflows, in one parameter of two: all skip, and all have
// the same new scale.
TEST_P(LossScale, OneRankOverflowsForAll) {
  StepText text;
  text.ranks = 4;
  text.parameters = {{"w", 3, ""}, {"v", 5, ""}};
  text.lossScale = getQuickRule();
  start(text);
  for (int rank = 0; rank < 4; ++rank) {
    double before = getScale();
    Window window(4, {{{"w", Values(3, 1)}, {"v", Values(5, 1)}}});
    window[rank][0]["v"][4] = rank % 2 ? kInfinite : -kInfinite;
    EXPECT_EQ(applyWindow(window).outcome, Outcome::skipped_nonfinite);
    EXPECT_EQ(getScale(), before / 2); // 0 where ranks disagree
    EXPECT_EQ(step->get("w"), Values(3, 0));
    EXPECT_EQ(step->get("v"), Values(5, 0));
  }
}

// A gradient of 1e19 is finite, though its square is not in f32; zeros are.
TEST_P(LossScale, FiniteGradientsAreNoOverflow) {
  StepText text;
  text.arrival = "f32";
  text.lossScale = getQuickRule("1.0");
  start(text);
  EXPECT_EQ(apply({1e19}).outcome, Outcome::applied);
  EXPECT_EQ(apply({0}).outcome, Outcome::applied);
  EXPECT_EQ(getScale(), 2);
}

// At its minimum DeepSpeed's scale stays, and steps are skipped still.
TEST_P(LossScale, StaysAtTheMinimum) {
  StepText text;
  text.lossScale = getRule("deepspeed", {{"65536.0", "2.0"}});
  start(text);
  for (double expected : {2.0, 1.0, 1.0, 1.0}) {
    EXPECT_EQ(apply({kInfinite}).outcome, Outcome::skipped_nonfinite);
    EXPECT_EQ(getScale(), expected);
    EXPECT_EQ(step->get("w")[0], 0);
  }
  EXPECT_EQ(apply({1}).outcome, Outcome::applied);
  EXPECT_EQ(step->get("w")[0], -1);
}

// A scale that would have no inverse, or be none, is not taken.
TEST_P(LossScale, StaysWhereItWouldBeNone) {
  StepText text;
  text.arrival = "f32";
  text.lossScale = getQuickRule("2.2250738585072014e-308");
  start(text);
  EXPECT_EQ(applyWindow(Window(2, {{{"w", {kInfinite}}}})).outcome,
            Outcome::skipped_nonfinite);
  EXPECT_EQ(getScale(), 0x1p-1022);
  text.lossScale = getQuickRule("8.98846567431158e+307");
  start(text);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(applyWindow(Window(2, {{{"w", {0}}}})).outcome, Outcome::applied);
  EXPECT_EQ(getScale(), 0x1p1023);
}

// A step that is refused or given up is none, and leaves the scale alone.
TEST_P(LossScale, RefusedStepsLeaveItAlone) {
  StepText text;
  text.lossScale = getQuickRule();
  start(text);
  apply({1});
  EXPECT_EQ(applyWindow({{{}}, {{{"w", {4}}}}}).outcome,
            Outcome::refused_missing_gradient);
  EXPECT_EQ(getScale(), 4);
  apply({1});
  EXPECT_EQ(getScale(), 8);
  EXPECT_EQ(step->get("w")[0], -2);
}

INSTANTIATE_TEST_SUITE_P(Ways, LossScale, testing::ValuesIn(getWays()), nameOf);
