//===- GradientTest.cpp - What closing a backward pass does to a number ---===//
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
  /// Each rank's own over dp and ep, or over |over|.
  Expr g(Epoch epoch, AxisSet over = kDp | kEp) {
    return algebra.gradient(epoch, over);
  }
  Expr sum(Expr a, AxisSet set) { return sumOverRanks(algebra, a, axes, set); }

  static constexpr AxisSet kDp = 1, kEp = 2, kTp = 4;
  MeshAxes axes{{{"dp", 4}, {"ep", 3}, {"tp", 2}}};
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
  // Nor what each backward pass is clipped with.
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
  EXPECT_EQ(sum(g(Epoch::all), kDp | kEp), g(Epoch::all, 0));
  EXPECT_EQ(sum(g(Epoch::all, 0), kDp),
            algebra.multiply(algebra.integer(4), g(Epoch::all, 0)));
  EXPECT_TRUE(sum(algebra.power(g(Epoch::all), 2), kDp | kEp)->isUndefined());
  // Half of each rank's is half of the sum.
  Expr half = algebra.rational({1, 2});
  EXPECT_EQ(sum(algebra.multiply(half, g(Epoch::all)), kDp | kEp),
            algebra.multiply(half, g(Epoch::all, 0)));
}

TEST_F(GradientTest, SumsOverSomeAxes) {
  EXPECT_EQ(sum(g(Epoch::all), kDp), g(Epoch::all, kEp));
  EXPECT_EQ(sum(sum(g(Epoch::all), kDp), kEp), g(Epoch::all, 0));
  // Over tp all ranks have the same.
  EXPECT_EQ(sum(g(Epoch::all), kDp | kTp),
            algebra.multiply(algebra.integer(2), g(Epoch::all, kEp)));
  EXPECT_FALSE(isWholeGradient(algebra, sum(g(Epoch::all), kDp)));
  // Twice over one axis counts its ranks.
  EXPECT_EQ(sum(sum(g(Epoch::all), kDp), kDp),
            algebra.multiply(algebra.integer(4), g(Epoch::all, kEp)));
  // A product of what differs over different axes is summed factor by factor.
  Expr dp = g(Epoch::all, kDp), ep = g(Epoch::former, kEp);
  EXPECT_EQ(sum(algebra.multiply(dp, ep), kDp | kEp),
            algebra.multiply(g(Epoch::all, 0), g(Epoch::former, 0)));
}

TEST_F(GradientTest, WhatCountsOnceIsAnAddend) {
  Expr whole = g(Epoch::all, 0);
  EXPECT_EQ(sum(countReplicatedOnce(algebra, whole, kTp), kTp), whole);
  EXPECT_EQ(countReplicatedOnce(algebra, whole, kTp)->getOwn(), kTp);
  EXPECT_EQ(
      sum(countReplicatedOnce(algebra, g(Epoch::all), kTp), kDp | kEp | kTp),
      whole);
  // Twice is once.
  EXPECT_EQ(countReplicatedOnce(algebra,
                                countReplicatedOnce(algebra, whole, kTp), kTp),
            countReplicatedOnce(algebra, whole, kTp));
  EXPECT_EQ(countReplicatedOnce(algebra,
                                countReplicatedOnce(algebra, whole, kTp), kDp),
            countReplicatedOnce(algebra, whole, kDp | kTp));
  // Of what differs over the axis one rank's is no sum.
  EXPECT_TRUE(sum(countReplicatedOnce(algebra, g(Epoch::all), kDp), kDp)
                  ->isUndefined());
  EXPECT_EQ(sum(countReplicatedOnce(algebra, whole, kDp | kTp), kDp)->getOwn(),
            kTp);
}

TEST_F(GradientTest, WhatCountsOnceIsZeroOnTheOtherRanks) {
  Expr whole = g(Epoch::all, 0);
  Expr once = countReplicatedOnce(algebra, algebra.integer(1), kTp);
  // 0/0 on them, and 1 on the first.
  EXPECT_NE(algebra.divide(once, once), algebra.integer(1));
  EXPECT_NE(algebra.divide(countReplicatedOnce(algebra, whole, kTp), once),
            whole);
  Expr inverse = algebra.divide(algebra.integer(1), once);
  EXPECT_NE(countReplicatedOnce(algebra, inverse, kTp), once);
  EXPECT_TRUE(sum(algebra.divide(once, once), kTp)->isUndefined());
}

TEST_F(GradientTest, CountsOfBackwardsAreSummedOnce) {
  Expr count = algebra.symbol(kAccumulation);
  Expr overDp = sum(count, kDp);
  EXPECT_EQ(overDp->getOwn(), kEp | kTp);
  EXPECT_EQ(sum(overDp, kEp | kTp), sum(count, kDp | kEp | kTp));
  EXPECT_EQ(sum(count, kDp | kEp | kTp)->getOwn(), 0u);
  EXPECT_NE(sum(algebra.multiply(count, count), kDp), overDp);
}

TEST_F(GradientTest, OnlyTheWholeGradientIsWhole) {
  Expr factor = nullptr;
  EXPECT_TRUE(isWholeGradient(
      algebra, algebra.multiply(algebra.symbol("s"), g(Epoch::all, 0)),
      &factor));
  EXPECT_EQ(factor, algebra.symbol("s"));
  EXPECT_FALSE(isWholeGradient(algebra, g(Epoch::all)));
  EXPECT_FALSE(isWholeGradient(algebra, g(Epoch::last, true)));
  EXPECT_FALSE(isWholeGradient(
      algebra, algebra.multiply(g(Epoch::all, 0), algebra.state("m"))));
}

} // namespace
