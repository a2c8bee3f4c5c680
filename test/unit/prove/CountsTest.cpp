//===- CountsTest.cpp - Numbers made of counts ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Counts.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace zero::prove;

namespace {

class CountsTest : public testing::Test {
protected:
  static constexpr AxisSet dp = 1, tp = 2, both = 3;
  Expr sum(Expr a, AxisSet set) { return sumOverRanks(algebra, a, axes, set); }

  Algebra algebra;
  MeshAxes axes{MeshAxes::List{{"dp", 2}, {"tp", 3}}};
  Expr w = getDelivered(algebra, "w", axes);
  Expr u = getDelivered(algebra, "u", axes);
};

TEST_F(CountsTest, DeliveredIsANumberOfEachRank) {
  EXPECT_NE(w, u);
  EXPECT_EQ(w, getDelivered(algebra, "w", axes));
  EXPECT_EQ(w->getOwn(), both);
}

TEST_F(CountsTest, SumsOfDeliveredAreKnown) {
  Expr all = sum(w, both);
  EXPECT_EQ(all->getOwn(), 0u);
  EXPECT_FALSE(all->isUndefined());
  EXPECT_EQ(sum(w, dp)->getOwn(), tp);
  EXPECT_EQ(sum(sum(w, dp), tp), all);
  EXPECT_EQ(sum(sum(w, tp), dp), all);
  EXPECT_NE(sum(u, both), all);
  EXPECT_EQ(sum(algebra.add(w, u), both), algebra.add(all, sum(u, both)));
  EXPECT_TRUE(sum(algebra.multiply(w, u), both)->isUndefined());
}

TEST_F(CountsTest, DeliveredMayBeZero) {
  for (Expr count : {w, sum(w, both)}) {
    EXPECT_TRUE(isExactCount(count));
    EXPECT_NE(algebra.divide(count, count), algebra.integer(1));
    for (int i = 0; i < kNumSituations; ++i) {
      Range range = getRangeOfCounts(algebra, count, getSituation(i), 6);
      EXPECT_EQ(range.least, 0);
      EXPECT_TRUE(std::isinf(range.most));
    }
  }
}

} // namespace
