//===- OutcomeTest.cpp - Steps that are skipped or refused ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InterpreterFixture.h"

#include <cmath>
#include <limits>

using namespace zero;
using namespace zero::test;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Inputs of two ranks with so many backward passes each, every gradient 1.
static std::vector<RankInputs> makeInputs(int first, int second) {
  std::vector<RankInputs> ranks(2);
  for (RankInputs &rank : ranks)
    rank.inputs = {1.0};
  for (auto [rank, count] : {std::pair(0, first), std::pair(1, second)})
    for (int b = 0; b < count; ++b)
      ranks[rank].backwards.emplace_back()["w"] = {1};
  return ranks;
}

TEST(Outcome, MissingGradientRefuses) {
  Runner run(StepText().print());
  std::vector<RankInputs> inputs = makeInputs(2, 2);
  inputs[1].backwards[0].erase("w");
  StepResult result = run.applyInputs(inputs);
  EXPECT_EQ(result.outcome, Outcome::refused_missing_gradient);
  EXPECT_EQ(result.message, "step refused: gradient of 'w' never arrived on "
                            "rank 1 (backward pass 1 of 2)");
  EXPECT_EQ(run.parameter(), std::vector<double>{0});
}

TEST(Outcome, OptionalGradientCountsAsZero) {
  StepText text;
  text.parameters = {{"w", 1, "optional"}};
  Runner run(text.print());
  std::vector<RankInputs> inputs = makeInputs(2, 2);
  inputs[1].backwards[0].erase("w");
  EXPECT_EQ(run.applyInputs(inputs).outcome, Outcome::applied);
  EXPECT_EQ(run.parameter(), std::vector<double>{-1.5});
}

TEST(Outcome, UnequalBackwardsRefuse) {
  Runner run(StepText().print());
  StepResult result = run.applyInputs(makeInputs(1, 2));
  EXPECT_EQ(result.outcome, Outcome::refused_unequal_backwards);
  EXPECT_EQ(result.message, "step refused: ranks made unequal numbers of "
                            "backward passes: rank 0 made 1, rank 1 made 2");
  EXPECT_EQ(run.applyInputs(makeInputs(0, 2)).outcome,
            Outcome::refused_unequal_backwards);
  EXPECT_EQ(run.parameter(), std::vector<double>{0});
}

TEST(Outcome, UnequalGoesBeforeMissingGoesBeforeNonfinite) {
  Runner run(StepText().print());
  std::vector<RankInputs> inputs = makeInputs(2, 2);
  inputs[0].backwards[0]["w"] = {kInfinity};
  EXPECT_EQ(run.applyInputs(inputs).outcome, Outcome::skipped_nonfinite);
  inputs[1].backwards[0].erase("w");
  EXPECT_EQ(run.applyInputs(inputs).outcome, Outcome::refused_missing_gradient);
  inputs[1].backwards.pop_back();
  EXPECT_EQ(run.applyInputs(inputs).outcome,
            Outcome::refused_unequal_backwards);
}

// Closed form 9: a skip leaves every bit of state, counters included.
TEST(Outcome, SkipLeavesStateUntouched) {
  StepText text;
  text.optimizer = "adamw";
  Runner run(text.print());
  run.apply({{{1}, {1}}}, {1e-3});
  auto snapshot = [&] {
    return std::vector{run.parameter(), run.state("m"), run.state("v"),
                       run.state("all.beta1_t", ""),
                       run.state("all.beta2_t", "")};
  };
  auto before = snapshot();
  StepResult skipped = run.apply({{{1}, {kInfinity}}}, {1e-3});
  EXPECT_EQ(skipped.outcome, Outcome::skipped_nonfinite);
  EXPECT_EQ(skipped.values[0], kInfinity);
  EXPECT_EQ(snapshot(), before);
  run.apply({{{1}, {1}}}, {1e-3});
  EXPECT_NEAR(run.parameter()[0], -0.002, 1e-8);
  EXPECT_NEAR(run.state("all.beta1_t", "")[0], 0.81, 1e-15);
}

TEST(Outcome, PoisonAppliesAllTheSame) {
  StepText text;
  text.nonfinite = "nonfinite apply";
  Runner run(text.print());
  EXPECT_EQ(run.apply({{{1}, {kInfinity}}}, {1.0}).outcome, Outcome::applied);
  EXPECT_EQ(run.parameter(), std::vector<double>{-kInfinity});
}

// As skip, and said to be an error, in every phase.
TEST(Outcome, ErrorRefuses) {
  StepText text;
  text.nonfinite = "nonfinite error";
  Runner run(text.print());
  StepResult result = run.apply({{{1}, {kInfinity}}}, {1.0});
  EXPECT_EQ(result.outcome, Outcome::refused_nonfinite);
  EXPECT_EQ(result.message, "step refused: a gradient is not finite");
  EXPECT_EQ(run.parameter(), std::vector<double>{0});
}

TEST(Outcome, WrongInputsAreErrors) {
  Runner run(StepText().print());
  EXPECT_TRUE(mlir::failed(run->apply(makeInputs(0, 0))));
  EXPECT_TRUE(mlir::failed(run->apply({})));
  std::vector<RankInputs> inputs = makeInputs(1, 1);
  inputs[0].backwards[0]["w"] = {1, 2};
  EXPECT_TRUE(mlir::failed(run->apply(inputs)));
  inputs = makeInputs(1, 1);
  inputs[0].backwards[0]["v"] = {1};
  EXPECT_TRUE(mlir::failed(run->apply(inputs)));
}
