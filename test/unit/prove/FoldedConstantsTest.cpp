//===- FoldedConstantsTest.cpp - Constants that were computed -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/FoldedConstants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace zero;
using namespace zero::prove;

namespace {

class FoldedConstantsTest : public testing::Test {
protected:
  Expr fold(Expr a) {
    Substitution folding = foldConstants(algebra);
    return folding.apply(a);
  }
  double evaluate(Expr a) {
    return algebra.evaluate(a, [&](BaseRef base) -> std::optional<double> {
      return base->kind == BaseKind::state
                 ? std::optional(base->name == "m" ? 3.0 : 5.0)
                 : std::nullopt;
    });
  }

  Algebra algebra;
  Expr one = algebra.integer(1);
  Expr m = algebra.state("m");
  Expr g = algebra.state("g");
};

TEST_F(FoldedConstantsTest, WhatTheTypeComputesExactlyIsOneConstant) {
  for (float beta : {0.9f, 0.95f, 0.98f, 0.99f, 0.999f}) {
    Expr unfolded = algebra.subtract(one, algebra.constant(beta));
    Expr folded = algebra.constant(double(1 - beta));
    EXPECT_NE(unfolded, folded);
    EXPECT_EQ(fold(unfolded), fold(folded)) << beta;
    EXPECT_NE(fold(unfolded),
              algebra.constant(double(std::nextafter(1 - beta, 2.0f))));
    // In products, and in operands of operations.
    Expr third = algebra.multiply(algebra.rational({1, 3}), g);
    Expr a =
        algebra.squareRoot(algebra.add(algebra.multiply(third, unfolded), m));
    Expr b =
        algebra.squareRoot(algebra.add(algebra.multiply(third, folded), m));
    EXPECT_NE(a, b);
    EXPECT_EQ(fold(a), fold(b));
  }
}

TEST_F(FoldedConstantsTest, SumsThatNeedMoreDigitsStay) {
  // 1e-9 of f64 and 1 have no sum in f64.
  Expr sum = algebra.add(one, algebra.constant(1e-9));
  EXPECT_EQ(fold(sum), sum);
  Expr infinite = algebra.add(one, algebra.constant(INFINITY));
  EXPECT_EQ(fold(infinite), infinite);
}

TEST_F(FoldedConstantsTest, WhatIsComparedStays) {
  // 1 + 2^-40 > 1 is false in f32.
  Expr little = algebra.add(one, algebra.constant(0x1p-40));
  for (const char *name : {"cmpf ogt", "minimumf", "maxnumf", "copysign"}) {
    Expr compared = algebra.operation(name, {little, m});
    EXPECT_EQ(fold(compared), compared) << name;
  }
  EXPECT_NE(fold(algebra.squareRoot(little)), algebra.squareRoot(little));
  Expr minusZero = algebra.add(algebra.constant(-0.0), m);
  EXPECT_EQ(fold(minusZero), minusZero);
}

TEST_F(FoldedConstantsTest, NumbersStayWhatTheyAre) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> real(-2, 2);
  std::uniform_int_distribution<int> small(1, 9), coin(0, 1);
  int changed = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<Expr> addends;
    double sum = 0, size = 0;
    for (int k = 0; k < 4; ++k) {
      Rational factor = *normalize(small(random), small(random));
      float x = real(random), y = coin(random) ? real(random) : 1.0f;
      bool hasM = coin(random), hasG = coin(random);
      Expr product = algebra.multiply(
          algebra.rational(factor),
          algebra.multiply(algebra.constant(x), algebra.constant(y)));
      if (hasM)
        product = algebra.multiply(product, m);
      if (hasG)
        product = algebra.multiply(product, g);
      addends.push_back(product);
      double value =
          factor.asDouble() * x * y * (hasM ? 3 : 1) * (hasG ? 5 : 1);
      sum += value;
      size += std::abs(value);
    }
    Expr before = algebra.sum(addends);
    Expr after = fold(before);
    changed += before != after;
    EXPECT_NEAR(evaluate(after), sum, size * 1e-14);
    EXPECT_EQ(fold(after), after);
  }
  EXPECT_GT(changed, 1000);
}

} // namespace
