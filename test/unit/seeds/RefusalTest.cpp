//===- RefusalTest.cpp - Steps that must change nothing -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <cmath>

using namespace zero;
using namespace zero::test;

namespace {
class Refusal : public testing::TestWithParam<Way> {};
} // namespace

// The report of empty buckets: a gradient that never arrives on one rank. Every
// rank refuses the step, and says which parameter and which rank it was.
TEST_P(Refusal, MissingGradientIsNamed) {
  StepText text;
  text.parameters = {{"used", 3, ""}, {"unused", 2, ""}};
  Step step(text, GetParam());
  step.bind("used", {1, 2, 3});
  Backward whole{{"used", {1, 1, 1}}, {"unused", {1, 1}}};
  Backward part{{"used", {1, 1, 1}}};
  auto result = step.apply(1.0, {{whole, whole}, {whole, part}});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->outcome, Outcome::refused_missing_gradient);
  EXPECT_EQ(step.get("used"), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(step.get("unused"), (std::vector<double>{0, 0}));
  if (GetParam().how == How::compiled) {
    EXPECT_NE(result->message.find("unused"), std::string::npos)
        << result->message;
    EXPECT_NE(result->message.find("rank 1"), std::string::npos)
        << result->message;
  }

  // The refused window is gone; the next step is a good one.
  result = step.apply(1.0, {{whole}, {whole}});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->outcome, Outcome::applied);
  EXPECT_EQ(step.get("used"), (std::vector<double>{0, 1, 2}));
}

// A model in which all parameters of one kind stay unused works where they are
// declared optional.
TEST_P(Refusal, OptionalParametersMayStayUnused) {
  StepText text;
  text.parameters = {{"used", 3, ""}, {"unused", 100, "optional"}};
  Step step(text, GetParam());
  Backward part{{"used", {1, 1, 1}}};
  auto result = step.apply(1.0, {{part}, {part}});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->outcome, Outcome::applied);
  EXPECT_EQ(step.get("used"), (std::vector<double>{-1, -1, -1}));
  EXPECT_EQ(step.get("unused"), std::vector<double>(100, 0.0));
}

// One inf on one rank: nobody applies the step, and counters do not advance.
// AdamW with g = 1 and lr 1e-3, skipped at step 2 of 3, ends near -0.002; had
// the counter advanced, near -0.00185846.
TEST_P(Refusal, NonfiniteStepChangesNothing) {
  StepText text;
  text.optimizer = "adamw";
  text.arrival = "f32";
  Step step(text, GetParam());
  Backward good{{"w", {1.0}}};
  Backward bad{{"w", {INFINITY}}};
  ASSERT_TRUE(mlir::succeeded(step.apply(1e-3, {{good}, {good}})));
  std::vector<double> before = step.get("w");
  std::vector<double> moment = step.getState("m", "w");
  auto result = step.apply(1e-3, {{good}, {bad}});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->outcome, Outcome::skipped_nonfinite);
  EXPECT_EQ(step.get("w"), before);
  EXPECT_EQ(step.getState("m", "w"), moment);
  ASSERT_TRUE(mlir::succeeded(step.apply(1e-3, {{good}, {good}})));
  EXPECT_NEAR(step.get("w")[0], -0.002, 1e-8);
}

// A rate that is not finite on any rank: all refuse, and counters and moments
// are what they were. The check of preconditions reports a rate that only one
// rank has; runtime/InputTest.cpp tests that case without the check.
TEST_P(Refusal, RateThatIsNotFiniteChangesNothing) {
  if (GetParam().how != How::compiled)
    GTEST_SKIP() << "the runtime refuses it, and no program";
  StepText text;
  text.optimizer = "adamw";
  Step step(text, GetParam());
  Window window{{{{"w", {1.0}}}}, {{{"w", {1.0}}}}};
  ASSERT_TRUE(mlir::succeeded(step.apply(1e-3, window)));
  std::vector<double> before = step.get("w");
  std::vector<double> moment = step.getState("m", "w");
  for (double rate : {double(NAN), double(INFINITY), -double(INFINITY)}) {
    auto result = step.apply(rate, window);
    ASSERT_TRUE(mlir::succeeded(result));
    EXPECT_EQ(result->outcome, Outcome::refused_input);
    for (const char *part :
         {"step refused: input 0 ('lr') of apply is ", " on rank 0, input 0",
          " on rank 1; pass finite numbers"})
      EXPECT_NE(result->message.find(part), std::string::npos)
          << result->message;
    EXPECT_EQ(step.get("w"), before);
    EXPECT_EQ(step.getState("m", "w"), moment);
  }
  // Had the counters advanced, w would be near -0.00186.
  ASSERT_TRUE(mlir::succeeded(step.apply(1e-3, window)));
  EXPECT_NEAR(step.get("w")[0], -0.002, 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Refusal, testing::ValuesIn(getWays()), nameOf);
