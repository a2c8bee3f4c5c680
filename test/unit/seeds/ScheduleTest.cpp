//===- ScheduleTest.cpp - Rates that change by step, in exact numbers -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <cmath>
#include <limits>

using namespace zero;
using namespace zero::test;

namespace {
using Values = std::vector<double>;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kSteps = 16;

/// examples/schedules/|name|.mlir with peak 1 and 4 steps of warm-up.
std::string getShort(const std::string &name,
                     std::vector<std::pair<std::string, std::string>> more) {
  more.insert(more.begin(), {{"3.0e-4", "1.0"}, {"100.0 : f64", "4.0 : f64"}});
  return replaceWords(getSchedule(name), more);
}

class Schedule : public testing::TestWithParam<Way> {
protected:
  void start(const std::string &schedule, int64_t numRanks = 2) {
    StepText text;
    text.ranks = ranks = numRanks;
    text.schedule = schedule;
    step = std::make_unique<Step>(text, GetParam());
  }
  /// One step of gradient |value| on each rank. The argument is not the rate.
  StepResult apply(double value) {
    mlir::FailureOr<StepResult> result =
        step->apply(1000, Window(ranks, {{{"w", {value}}}}));
    EXPECT_TRUE(mlir::succeeded(result));
    return mlir::succeeded(result) ? *result : StepResult();
  }

  int64_t ranks = 0;
  std::unique_ptr<Step> step;
};
} // namespace

// Peak 1, 4 steps of warm-up, the end at step 12, of which WSD takes 4 to come
// down. With gradient 1 each step subtracts its rate.
TEST_P(Schedule, FollowsItsFormula) {
  double pi = std::acos(-1.0);
  struct {
    std::string text;
    std::function<double(double)> value;
    double tolerance;
  } cases[] = {{getShort("constant", {}), [](double) { return 1.0; }, 0},
               {getShort("linear", {{"1000.0 : f64", "12.0 : f64"}}),
                [](double n) { return (12 - n) / 8; }, 0},
               {getShort("wsd", {{"200.0 : f64", "4.0 : f64"},
                                 {"1000.0 : f64", "12.0 : f64"}}),
                [](double n) { return std::fmin(1, (12 - n) / 4); }, 0},
               // Three roundings behind a cosine that is good to two units.
               {getShort("cosine", {{"1000.0 : f64", "12.0 : f64"}}),
                [&](double n) {
                  double x = std::fmin(1, std::fmax(0, (n - 4) / 8));
                  return 0.1 + 0.9 * (1 + std::cos(pi * x)) / 2;
                },
                0x1p-50}};
  for (auto &[text, value, tolerance] : cases) {
    start(text);
    double sum = 0;
    for (int n = 1; n <= kSteps; ++n) {
      StepResult result = apply(1);
      ASSERT_EQ(result.outcome, Outcome::applied) << result.message;
      double expected = std::fmin(n / 4.0, std::fmax(0, value(n)));
      EXPECT_NEAR(result.values[1], expected, tolerance) << "step " << n;
      sum += expected;
      EXPECT_NEAR(step->get("w")[0], -sum, tolerance ? kSteps * 0x1p-20 : 0);
    }
  }
}

// Gradients of 1 but for an overflow in step 2. Where the schedule holds, step
// 3 has the rate of step 2; where it advances, its own.
TEST_P(Schedule, HoldsOrAdvancesOnASkip) {
  std::string holds = getShort("constant", {});
  std::string advances = replaceWords(
      holds, {{"%skipped, %step, %more", "%skipped, %more, %more"}});
  for (bool isHeld : {true, false}) {
    start(isHeld ? holds : advances, /*numRanks=*/3);
    EXPECT_EQ(apply(1).values[1], 0.25);
    StepResult skipped = apply(kInfinite);
    EXPECT_EQ(skipped.outcome, Outcome::skipped_nonfinite);
    EXPECT_EQ(skipped.values[1], 0.5);
    EXPECT_EQ(step->get("w")[0], -0.25);
    EXPECT_EQ(apply(1).values[1], isHeld ? 0.5 : 0.75);
    EXPECT_EQ(step->get("w")[0], isHeld ? -0.75 : -1);
  }
}

// A refused step is none, even for a schedule that advances where steps are
// skipped.
TEST_P(Schedule, RefusedStepsLeaveItAlone) {
  start(replaceWords(getShort("constant", {}),
                     {{"%skipped, %step, %more", "%skipped, %more, %more"}}));
  apply(1);
  mlir::FailureOr<StepResult> refused =
      step->apply(1000, {{{}}, {{{"w", {4}}}}});
  ASSERT_TRUE(mlir::succeeded(refused));
  EXPECT_EQ(refused->outcome, Outcome::refused_missing_gradient);
  EXPECT_EQ(apply(1).values[1], 0.5);
  EXPECT_EQ(step->get("w")[0], -0.75);
}

INSTANTIATE_TEST_SUITE_P(Ways, Schedule, testing::ValuesIn(getWays()), nameOf);
