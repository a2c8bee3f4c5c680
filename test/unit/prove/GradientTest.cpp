//===- GradientTest.cpp - What closing a backward does to a number --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Gradient.h"

#include <gtest/gtest.h>

using namespace zero;
using namespace zero::prove;

namespace {

class GradientTest : public testing::Test {
protected:
  Expr g(Epoch epoch, bool summed = false) {
    return algebra.gradient(epoch, summed);
  }
  Expr close(Expr a) { return closeBackward(algebra, a, /*isFirst=*/false); }

  Algebra algebra;
};

TEST_F(GradientTest, TheFirstBackwardIsAllThatIsClosed) {
  EXPECT_EQ(closeBackward(algebra, g(Epoch::current), /*isFirst=*/true),
            g(Epoch::earlier));
}

TEST_F(GradientTest, ALaterOneJoinsWhereItCountsTheSame) {
  EXPECT_EQ(close(algebra.add(g(Epoch::earlier), g(Epoch::current))),
            g(Epoch::earlier));
  Expr half = algebra.rational({1, 2});
  EXPECT_EQ(close(algebra.multiply(
                half, algebra.add(g(Epoch::earlier), g(Epoch::current)))),
            algebra.multiply(half, g(Epoch::earlier)));
}

TEST_F(GradientTest, WhatCountsOtherwiseIsToldApart) {
  // Twice the last one; the last one alone; all but the last.
  EXPECT_EQ(close(algebra.add(
                g(Epoch::earlier),
                algebra.multiply(algebra.integer(2), g(Epoch::current)))),
            algebra.add(g(Epoch::former),
                        algebra.multiply(algebra.integer(2), g(Epoch::last))));
  EXPECT_EQ(close(g(Epoch::current)), g(Epoch::last));
  EXPECT_EQ(close(g(Epoch::earlier)), g(Epoch::former));
  // A sum over ranks and a rank's own share are not alike.
  EXPECT_EQ(close(algebra.add(g(Epoch::earlier, true), g(Epoch::current))),
            algebra.add(g(Epoch::former, true), g(Epoch::last)));
}

// After one more it is the last of them no more, nor all but that.
TEST_F(GradientTest, WhatWasTheLastIsUnknownAfterOneMore) {
  EXPECT_TRUE(close(close(g(Epoch::current)))->isUndefined());
  EXPECT_TRUE(close(close(g(Epoch::earlier)))->isUndefined());
  EXPECT_EQ(close(g(Epoch::all)), g(Epoch::all));
}

TEST_F(GradientTest, SquaresDoNotJoin) {
  Expr sum = algebra.add(algebra.power(g(Epoch::earlier), 2),
                         algebra.power(g(Epoch::current), 2));
  EXPECT_NE(close(sum), algebra.power(g(Epoch::earlier), 2));
  // Nor what each backward is clipped with.
  auto clipped = [&](Epoch epoch) {
    return algebra.multiply(g(epoch),
                            algebra.operation("minimumf", {g(epoch)}));
  };
  EXPECT_NE(
      close(algebra.add(clipped(Epoch::earlier), clipped(Epoch::current))),
      clipped(Epoch::earlier));
}

TEST_F(GradientTest, TheSumOverBackwards) {
  EXPECT_EQ(sumOverBackwards(algebra, g(Epoch::current)), g(Epoch::all));
  EXPECT_EQ(sumOverBackwards(algebra, algebra.integer(1)),
            algebra.symbol(kAccumulation));
  EXPECT_FALSE(isWholeGradient(
      algebra, sumOverBackwards(algebra, algebra.power(g(Epoch::current), 2))));
}

TEST_F(GradientTest, WithoutAGradientThereIsWhatWasBefore) {
  EXPECT_EQ(withoutCurrent(algebra,
                           algebra.add(g(Epoch::earlier), g(Epoch::current))),
            g(Epoch::earlier));
  EXPECT_TRUE(withoutCurrent(algebra, g(Epoch::current))->isZero());
  EXPECT_EQ(
      withoutCurrent(algebra, algebra.operation("absf", {g(Epoch::current)})),
      nullptr);
}

TEST_F(GradientTest, SumsOverRanks) {
  EXPECT_EQ(sumOverRanks(algebra, g(Epoch::all), 4), g(Epoch::all, true));
  EXPECT_EQ(sumOverRanks(algebra, g(Epoch::all, true), 4),
            algebra.multiply(algebra.integer(4), g(Epoch::all, true)));
  EXPECT_TRUE(
      sumOverRanks(algebra, algebra.power(g(Epoch::all), 2), 4)->isUndefined());
  // Half of each rank's is half of the sum.
  Expr half = algebra.rational({1, 2});
  EXPECT_EQ(sumOverRanks(algebra, algebra.multiply(half, g(Epoch::all)), 4),
            algebra.multiply(half, g(Epoch::all, true)));
}

TEST_F(GradientTest, OnlyTheWholeGradientIsWhole) {
  Expr factor = nullptr;
  EXPECT_TRUE(isWholeGradient(
      algebra, algebra.multiply(algebra.symbol("s"), g(Epoch::all, true)),
      &factor));
  EXPECT_EQ(factor, algebra.symbol("s"));
  EXPECT_FALSE(isWholeGradient(algebra, g(Epoch::all)));
  EXPECT_FALSE(isWholeGradient(algebra, g(Epoch::last, true)));
  EXPECT_FALSE(isWholeGradient(
      algebra, algebra.multiply(g(Epoch::all, true), algebra.state("m"))));
}

} // namespace
