//===- RootsTest.cpp - Roots of numbers that may not be finite ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Roots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace zero;
using namespace zero::prove;

namespace {

class RootsTest : public testing::Test {
protected:
  /// The sum of squares of the parameter |name|.
  Expr sumOfSquares(llvm::StringRef name) {
    Expr g = algebra.gradient(Epoch::all, 0);
    return algebra.base({BaseKind::sumOver,
                         name.str(),
                         Epoch::all,
                         0,
                         0,
                         {algebra.multiply(g, g)}});
  }
  /// What clips gradients with this |norm| to a norm of 1.
  Expr clip(Expr norm, Expr epsilon) {
    return algebra.symmetric("minimumf", one,
                             algebra.divide(one, algebra.add(norm, epsilon)));
  }
  Expr square(Expr a) { return algebra.multiply(a, a); }
  bool areEqual(Expr a, Expr b) {
    Substitution takeOut = takeOutOfRoots(algebra);
    return takeOut.apply(a) == takeOut.apply(b);
  }

  Algebra algebra;
  Expr one = algebra.integer(1);
  Expr epsilon = algebra.rational({1, 1024});
  Expr s = sumOfSquares("s");
  Expr t = sumOfSquares("t");
};

TEST_F(RootsTest, ClipCoefficientsAreTakenOut) {
  for (Expr least : {epsilon, algebra.integer(0)}) {
    Expr sum = algebra.add(s, t);
    Expr c = clip(algebra.squareRoot(sum), least);
    Expr inside = algebra.squareRoot(algebra.multiply(square(c), sum));
    Expr outside = algebra.multiply(c, algebra.squareRoot(sum));
    EXPECT_NE(inside, outside);
    EXPECT_TRUE(areEqual(inside, outside));
    // Also where another coefficient depends on it.
    EXPECT_TRUE(areEqual(clip(inside, least), clip(outside, least)));
    EXPECT_FALSE(areEqual(inside, algebra.multiply(c, outside)));
    for (double x : {0.0, 0.25, 9.0, double(INFINITY), double(NAN)})
      for (double y : {0.0, 4.0, double(INFINITY), double(NAN)}) {
        auto value = [&](Expr a) {
          return algebra.evaluate(a,
                                  [&](BaseRef base) -> std::optional<double> {
                                    if (base->kind != BaseKind::sumOver)
                                      return std::nullopt;
                                    return base->name == "s" ? x : y;
                                  });
        };
        EXPECT_EQ(std::isnan(value(inside)), std::isnan(value(outside)));
        if (!std::isnan(value(inside)))
          EXPECT_DOUBLE_EQ(value(inside), value(outside));
      }
  }
}

TEST_F(RootsTest, WhatMayBeNegativeStays) {
  Expr x = algebra.base({BaseKind::input, "x"});
  Expr negative = algebra.subtract(algebra.squareRoot(s), one);
  // The tokens of one rank may be negative where their sum is not.
  Expr own = algebra.base({BaseKind::tokens, "", Epoch::all, /*over=*/1});
  for (Expr c : {x, clip(x, epsilon), clip(negative, epsilon), negative, own}) {
    Expr inside = algebra.squareRoot(algebra.multiply(square(c), s));
    EXPECT_FALSE(areEqual(inside, algebra.multiply(c, algebra.squareRoot(s))));
  }
  // The root of 0 times a negative number is 0, and 0 times its root is nan.
  Expr c = clip(algebra.squareRoot(s), epsilon);
  Expr inside = algebra.squareRoot(algebra.multiply(square(c), x));
  EXPECT_FALSE(areEqual(inside, algebra.multiply(c, algebra.squareRoot(x))));
}

TEST_F(RootsTest, NumbersOfTokensAreTakenOut) {
  Expr tokens = algebra.base({BaseKind::tokens, ""});
  Expr sum = algebra.add(s, t);
  Expr inside = algebra.squareRoot(algebra.divide(sum, square(tokens)));
  EXPECT_TRUE(
      areEqual(inside, algebra.divide(algebra.squareRoot(sum), tokens)));
}

TEST_F(RootsTest, WhatMayBeInfiniteStaysWithSums) {
  Expr u = algebra.operation("sqrt", {sumOfSquares("u")});
  auto inside = [&](Expr sum) {
    return algebra.squareRoot(algebra.multiply(square(u), sum));
  };
  auto outside = [&](Expr sum) {
    return algebra.multiply(u, algebra.squareRoot(sum));
  };
  EXPECT_TRUE(areEqual(inside(s), outside(s)));
  // Infinity times (0 + 1) is infinite, and infinity times 0 is nan.
  Expr sum = algebra.add(s, t);
  EXPECT_FALSE(areEqual(inside(sum), outside(sum)));
}

} // namespace
