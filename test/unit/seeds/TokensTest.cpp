//===- TokensTest.cpp - Every token counts the same -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks and backward passes have different numbers of tokens, and the gradient
// is the mean over all of them.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <limits>

using namespace zero;
using namespace zero::test;

namespace {
/// A step that divides by tokens, with gradients that |arrive| multiplied.
StepText weighByTokens(const std::string &arrive = "") {
  StepText text;
  text.weight = "tokens : -1";
  text.arrives = arrive;
  return text;
}

class Tokens : public testing::TestWithParam<Way> {
protected:
  /// Of the tokens of each rank and backward pass, and their mean gradients.
  const std::vector<std::vector<double>> counts = {{1, 1}, {2, 4}};
  const std::vector<std::vector<double>> means = {{1, 3}, {2, 4}};

  /// What ranks deliver: a sum over the tokens of a backward pass, or their
  /// mean.
  Window deliver(bool isSum) {
    Window window(2);
    for (int r = 0; r < 2; ++r)
      for (int b = 0; b < 2; ++b)
        window[r].push_back(
            {{"w", {means[r][b] * (isSum ? counts[r][b] : 1)}}});
    return window;
  }
};
} // namespace

// (1 + 3 + 2 * 2 + 4 * 4) / 8 = 24 / 8 = 3. The mean over ranks of each rank's
// mean is ((1 + 3) / 2 + (4 + 16) / 6) / 2 = 2.666667, that over backward
// passes of each one's 2.733333.
TEST_P(Tokens, WeighAsManyAsThereAre) {
  Step step(weighByTokens(), GetParam());
  auto result = step.apply(1, deliver(/*isSum=*/true), {2, 6});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->outcome, Outcome::applied) << result->message;
  EXPECT_EQ(step.get("w")[0], -3);
  EXPECT_EQ(result->values[0], 3);

  // One backward pass, another number of tokens: (1 + 3) / 16.
  result = step.apply(1, {{{{"w", {1}}}}, {{{"w", {3}}}}}, {0, 16});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(step.get("w")[0], -3.25);
}

// The mean of means, which every token of a short sequence counts more in.
TEST_P(Tokens, AreNotWhatAMeanOverBackwardsWeighs) {
  StepText text;
  text.weight = "accumulation : -1, dp : -1";
  Step step(text, GetParam());
  ASSERT_TRUE(mlir::succeeded(step.apply(1, deliver(/*isSum=*/false))));
  EXPECT_EQ(step.get("w")[0], -2.5);
}

// Who has divided by the tokens of all ranks already says so.
TEST_P(Tokens, MayBeDividedOutByTheCaller) {
  Step step(weighByTokens("tokens : -1"), GetParam());
  Window window = deliver(/*isSum=*/true);
  for (auto &backwards : window)
    for (Backward &backward : backwards)
      backward["w"][0] /= 8;
  ASSERT_TRUE(mlir::succeeded(step.apply(1, window, {2, 6})));
  EXPECT_EQ(step.get("w")[0], -3);
}

TEST_P(Tokens, NoneAreNoStep) {
  Step step(weighByTokens(), GetParam());
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  // All zeros; less than none; what has no inverse; what is no number.
  for (std::vector<double> tokens : {std::vector{0.0, 0.0},
                                     {3.0, -4.0},
                                     {0.0, 1e-310},
                                     {kInfinite, 1.0},
                                     {1.0, kNan}}) {
    auto result = step.apply(1, deliver(/*isSum=*/true), tokens);
    ASSERT_TRUE(mlir::succeeded(result));
    EXPECT_EQ(result->outcome, Outcome::refused_no_tokens);
    EXPECT_EQ(step.get("w")[0], 0);
    if (tokens[1] == -4)
      EXPECT_NE(result->message.find(
                    "step refused: the number of tokens must be positive: rank "
                    "0 counted 3, rank 1 counted -4"),
                std::string::npos)
          << result->message;
  }
  auto result = step.apply(1, deliver(/*isSum=*/true), {8, 0});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(step.get("w")[0], -3);
}

// Rank 0 makes one backward pass of two tokens, rank 1 three of six in all: (4
// + 2 + 4 + 6) / 8 = 2.
TEST_P(Tokens, MayBeInMoreBackwardsOnOneRank) {
  Window window = {{{{"w", {4}}}}, {{{"w", {2}}}, {{"w", {4}}}, {{"w", {6}}}}};
  Step step(weighByTokens(), GetParam());
  if (GetParam().stage >= 2) {
    // Its ranks wait for each other in each backward pass.
    auto result = step.apply(1, window, {2, 6});
    if (mlir::failed(result)) {
      // The runtime is of no use to anyone then, so nothing is read of it.
      EXPECT_EQ(GetParam().how, How::compiled);
      return;
    }
    EXPECT_EQ(result->outcome, Outcome::refused_unequal_backwards)
        << result->message;
    EXPECT_EQ(step.getOn(0, "w")[0], 0);
    EXPECT_EQ(step.getOn(1, "w")[0], 0);
    return;
  }
  for (int i = 1; i < 4; ++i) {
    auto result = step.apply(1, window, {2, 6});
    ASSERT_TRUE(mlir::succeeded(result));
    EXPECT_EQ(result->outcome, Outcome::applied) << result->message;
    EXPECT_EQ(step.get("w")[0], -2 * i);
    std::swap(window[0], window[1]);
  }
  // Missing in the second backward pass of the rank that makes three.
  window[0].size() > 1 ? window[0][1].erase("w") : window[1][1].erase("w");
  auto result = step.apply(1, window, {2, 6});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->outcome, Outcome::refused_missing_gradient)
      << result->message;
}

// Where gradients are divided by the number of this rank's backward passes as
// well, or several ranks have the same tokens, these numbers must be the same.
TEST_P(Tokens, AreNotCountedByBackwards) {
  StepText mean = weighByTokens("accumulation : -1");
  mean.weight = "accumulation : -1, tokens : -1";
  std::string shared =
      replaceWords(weighByTokens().print(),
                   {{"[\"dp\" = 2]", "[\"dp\" = 1, \"tp\" = 2]"},
                    {"prescaled()", "prescaled() replicated [tp]"}});
  for (const std::string &text :
       {weighByTokens("accumulation : -1").print(), mean.print(), shared}) {
    Window window = {{{{"w", {4}}}}, {{{"w", {4}}}, {{"w", {4}}}}};
    Step step(text, GetParam());
    auto result = step.apply(1, window, {4, 4});
    // Compiled steps find out before that ranks did not deliver the same, or
    // did not meet in each backward pass.
    if (mlir::failed(result)) {
      EXPECT_TRUE(GetParam().how == How::compiled &&
                  (text == shared || GetParam().stage >= 2));
      continue;
    }
    EXPECT_EQ(result->outcome, Outcome::refused_unequal_backwards)
        << result->message;
    EXPECT_EQ(step.getOn(0, "w")[0], 0);
    EXPECT_EQ(step.getOn(1, "w")[0], 0);
  }
}

// A gradient that never came is the better reason.
TEST_P(Tokens, AreLookedAtAfterGradients) {
  Step step(weighByTokens(), GetParam());
  Window window = deliver(/*isSum=*/true);
  window[1][0].erase("w");
  auto result = step.apply(1, window, {0, 0});
  ASSERT_TRUE(mlir::succeeded(result));
  EXPECT_EQ(result->outcome, Outcome::refused_missing_gradient);
}

INSTANTIATE_TEST_SUITE_P(Ways, Tokens, testing::ValuesIn(getWays()), nameOf);
