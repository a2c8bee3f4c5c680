//===- LogicalTest.cpp - The logical phase against closed forms -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InterpreterFixture.h"

#include <cmath>
#include <random>

using namespace zero;
using namespace zero::test;

namespace {

/// g = 2^(k + 4r) in backward pass k of rank r: any lost or repeated
/// contribution shows in the sum.
std::vector<std::vector<Gradient>> powersOfTwo() {
  std::vector<std::vector<Gradient>> gradients;
  for (int k = 0; k < 4; ++k)
    gradients.push_back({{std::ldexp(1.0, k)}, {std::ldexp(1.0, k + 4)}});
  return gradients;
}

StepText oneHot() {
  StepText text;
  text.parameters = {{"w", 8, ""}};
  text.weight = "accumulation : -1, dp : -1";
  return text;
}

} // namespace

// Closed form 1, seed #7985: the mean over 4 backward passes and 2 ranks of
// unit vectors.
TEST(Logical, EveryOneHotContributionIsInTheMean) {
  for (Arithmetic arithmetic : {Arithmetic::Typed, Arithmetic::F64}) {
    Runner run(oneHot().print(), arithmetic);
    std::vector<std::vector<Gradient>> gradients;
    for (int m = 0; m < 4; ++m) {
      gradients.emplace_back();
      for (int r = 0; r < 2; ++r) {
        Gradient unit(8, 0.0);
        unit[2 * m + r] = 1;
        gradients.back().push_back(unit);
      }
    }
    StepResult result = run.apply(gradients, {1.0});
    EXPECT_EQ(result.outcome, Outcome::applied);
    EXPECT_EQ(result.backwards, 4);
    EXPECT_EQ(result.values[0], std::sqrt(1.0 / 8));
    EXPECT_EQ(run.parameter(), std::vector<double>(8, -0.125));
  }
}

// Closed form 2, seed #7981: a sum over backward passes and a mean over ranks.
TEST(Logical, BackwardsAddUp) {
  Runner run(StepText().print());
  StepResult result = run.apply(powersOfTwo(), {1.0 / 128});
  EXPECT_EQ(result.values[0], 127.5);
  EXPECT_EQ(run.parameter(), std::vector<double>{-0.99609375});
  // Nothing leaks into the next step.
  EXPECT_EQ(run.apply({{{32}, {32}}}, {0.0}).values[0], 32);
}

// Closed form 2 with AdamW, whose first step is blind to scale: its moments.
TEST(Logical, MomentsAreThoseOfTheMean) {
  StepText text;
  text.optimizer = "adamw";
  Runner exact(text.print(), Arithmetic::F64);
  Runner typed(text.print());
  exact.apply(powersOfTwo(), {1e-3});
  typed.apply(powersOfTwo(), {1e-3});
  for (auto [role, expected] :
       {std::pair("m", 12.75), std::pair("v", 16.25625)}) {
    Number number = exact->getState(role, "w")[0];
    EXPECT_NEAR(number.value, expected, 1e-13);
    EXPECT_GT(number.bound, 0);
    EXPECT_LT(number.bound, 1e-4);
    EXPECT_LE(std::fabs(typed.state(role)[0] - expected), number.bound);
  }
}

// Closed form 2: the type of the accumulator is what it says.
TEST(Logical, AccumulatorTypeRounds) {
  std::vector<std::vector<Gradient>> gradients{{{256}}, {{1}}, {{1}}, {{1}}};
  StepText text;
  text.ranks = 1;
  EXPECT_EQ(Runner(text.print()).apply(gradients, {0.0}).values[0], 259);
  text.accumulator = text.arrival = "bf16";
  EXPECT_EQ(Runner(text.print()).apply(gradients, {0.0}).values[0], 256);
  // The bound covers what bf16 loses.
  Runner exact(text.print(), Arithmetic::F64);
  EXPECT_EQ(exact.apply(gradients, {1.0}).values[0], 259);
  EXPECT_GE(exact->getParameter(0, "w")[0].bound, 3);
}

TEST(Logical, ParametersAreRoundedAndMastersAreNot) {
  StepText text;
  text.storage = "bf16";
  Runner run(text.print());
  ASSERT_TRUE(mlir::succeeded(run->bindParameter("w", {1.001})));
  EXPECT_EQ(run.parameter(), std::vector<double>{1});
  EXPECT_EQ(run.state("master"), std::vector<double>{1});
  // 1 - 2^-10 is no bf16; the master weights keeps it.
  run.apply({{{1}, {1}}}, {std::ldexp(1.0, -10)});
  EXPECT_EQ(run.parameter(), std::vector<double>{1});
  EXPECT_EQ(run.state("master"), std::vector<double>{1 - std::ldexp(1.0, -10)});
}

TEST(Logical, AParameterInTheOptimizersTypeHasNoMaster) {
  Runner run(StepText().print());
  EXPECT_TRUE(run.state("master").empty());
}

// The typed result lies within the bound of the exact one, element by element,
// over several steps.
TEST(Logical, TypedIsWithinTheBound) {
  for (const char *storage : {"f32", "bf16"})
    for (const char *accumulator : {"f32", "bf16"}) {
      StepText text = oneHot();
      text.parameters = {{"w", 200, ""}};
      text.ranks = 3;
      text.optimizer = "adamw";
      text.storage = storage;
      text.arrival = "bf16";
      text.accumulator = accumulator;
      Runner typed(text.print());
      Runner exact(text.print(), Arithmetic::F64);
      std::mt19937 random(1);
      std::normal_distribution<double> normal;
      auto draw = [&] {
        Gradient gradient(200);
        for (double &value : gradient)
          value = normal(random);
        return gradient;
      };
      Gradient initial = draw();
      ASSERT_TRUE(mlir::succeeded(typed->bindParameter("w", initial)));
      ASSERT_TRUE(mlir::succeeded(exact->bindParameter("w", initial)));
      for (int step = 0; step < 5; ++step) {
        std::vector<std::vector<Gradient>> gradients;
        for (int b = 0; b < 3; ++b)
          gradients.push_back({draw(), draw(), draw()});
        StepResult typedResult = typed.apply(gradients, {1e-2});
        StepResult exactResult = exact.apply(gradients, {1e-2});
        int different = 0;
        auto check = [&](const std::vector<double> &got,
                         const std::vector<Number> &expected) {
          ASSERT_EQ(got.size(), expected.size());
          for (size_t i = 0; i < got.size(); ++i) {
            different += got[i] != expected[i].value;
            ASSERT_LE(std::fabs(got[i] - expected[i].value), expected[i].bound)
                << i << " in step " << step << " as " << storage;
          }
        };
        // What a step reports has a bound as well.
        EXPECT_EQ(typedResult.bounds, std::vector<double>{0});
        ASSERT_EQ(exactResult.bounds.size(), 1u);
        check(typedResult.values,
              {{exactResult.values[0], exactResult.bounds[0]}});
        EXPECT_LT(exactResult.bounds[0], exactResult.values[0]);
        check(typed.parameter(), exact->getParameter(0, "w"));
        check(typed.state("m"), exact->getState("m", "w"));
        check(typed.state("v"), exact->getState("v", "w"));
        check(typed.state("master"), exact->getState("master", "w"));
        // The bound means something: there were errors, and it is small.
        EXPECT_GT(different, 0);
        if (accumulator == std::string("f32"))
          EXPECT_LT(exact->getState("m", "w")[0].bound, 1e-4);
      }
    }
}
