//===- CountsTest.cpp - Numbers made of counts ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Counts.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace zero;
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

//===----------------------------------------------------------------------===//
// Numbers of real steps
//===----------------------------------------------------------------------===//

/// What each rank counts in a step.
struct Rank {
  int64_t backwards, missing, delivered;
};

class DrawnCountsTest : public testing::Test {
protected:
  static constexpr int64_t kRanks = 3;

  int64_t below(int64_t end) { return int64_t(random() % uint64_t(end)); }

  /// Ranks of a step in |situation|.
  std::vector<Rank> drawRanks(Situation situation) {
    std::vector<Rank> ranks(kRanks);
    int64_t backwards = 1 + below(4), missing = 0;
    for (Rank &rank : ranks) {
      rank.backwards = backwards;
      rank.missing = below(7) - 3;
      missing += rank.missing;
    }
    if (situation.unequal)
      ranks[size_t(below(kRanks))].backwards += 1 + below(4);
    int64_t sum = !situation.missing    ? 0
                  : situation.belowZero ? -1 - below(3)
                                        : 1 + below(3);
    ranks[0].missing += sum - missing;
    for (Rank &rank : ranks)
      rank.delivered = below(rank.backwards + 1);
    return ranks;
  }

  /// A sum of products of counts, of sums of them and of their powers.
  Expr drawNumber() {
    const Expr own[] = {algebra.symbol(kAccumulation.str()),
                        getMissing(algebra, axes),
                        getDelivered(algebra, "w", axes)};
    Expr number = algebra.integer(below(5) - 2);
    for (int64_t terms = 1 + below(3); terms > 0; --terms) {
      Expr product = algebra.rational(*normalize(below(9) - 4, 1 + below(3)));
      for (int64_t factors = 1 + below(2); factors > 0; --factors) {
        Expr factor = algebra.power(own[below(3)], 1 + below(2));
        if (below(3) > 0)
          factor = sumOverRanks(algebra, factor, axes, /*set=*/1);
        product = algebra.multiply(product, factor);
      }
      number = algebra.add(number, product);
    }
    return number;
  }

  double evaluate(Expr a, const std::vector<Rank> &ranks, size_t rank) {
    double sum = 0;
    for (const Term &term : a->getTerms()) {
      double product = term.coefficient.asDouble();
      for (auto [base, power] : term.monomial)
        product *= std::pow(evaluate(base, ranks, rank), double(power));
      sum += product;
    }
    return sum;
  }
  double evaluate(BaseRef base, const std::vector<Rank> &ranks, size_t rank) {
    switch (base->kind) {
    case BaseKind::symbol:
      return double(ranks[rank].backwards);
    case BaseKind::missing:
      return double(ranks[rank].missing);
    case BaseKind::delivered:
      return double(ranks[rank].delivered);
    default: {
      EXPECT_EQ(base->kind, BaseKind::rankSum);
      double sum = 0;
      for (size_t r = 0; r < ranks.size(); ++r)
        sum += evaluate(base->operands[0], ranks, r);
      return sum;
    }
    }
  }

  std::mt19937_64 random{5};
  Algebra algebra;
  MeshAxes axes{MeshAxes::List{{"dp", kRanks}}};
};

// A range that lacks the number of some step decides its outcome wrongly.
TEST_F(DrawnCountsTest, ARangeHasTheNumbersOfAllSteps) {
  int64_t bounded = 0;
  for (int i = 0; i < 4000; ++i) {
    Expr number = drawNumber();
    if (number->isUndefined())
      continue;
    ASSERT_TRUE(isOfCounts(number)) << toString(number);
    for (int s = 0; s < kNumSituations; ++s) {
      Situation situation = getSituation(s);
      situation.belowZero = situation.missing && below(2) > 0;
      Range range = getRangeOfCounts(algebra, number, situation, kRanks);
      bounded += std::isfinite(range.least) || std::isfinite(range.most);
      for (int drawn = 0; drawn < 6; ++drawn) {
        std::vector<Rank> ranks = drawRanks(situation);
        double value = evaluate(number, ranks, size_t(below(kRanks)));
        double rounding = 1e-9 * (1 + std::abs(value));
        ASSERT_TRUE(range.least - rounding <= value &&
                    value <= range.most + rounding)
            << toString(number) << " is " << value << " where "
            << describe(situation) << ", and the range is " << range.least
            << " to " << range.most;
      }
    }
  }
  EXPECT_GT(bounded, 10000); // or the test says nothing
}

// The largest whole number that it allows fits.
TEST_F(DrawnCountsTest, ACountThatIsExactFitsIntoF64) {
  // As many backward passes on all ranks together as there may be, and as many
  // missing gradients.
  int64_t backwards = (int64_t(1) << kBackwardsExponent) / kRanks;
  int64_t missing = (int64_t(1) << kMissingExponent) / kRanks;
  const std::vector<Rank> ranks(kRanks, {backwards, missing, backwards});
  int64_t exact = 0;
  for (int i = 0; i < 4000; ++i) {
    Expr number = drawNumber();
    if (number->isUndefined() || !isExactCount(number))
      continue;
    ++exact;
    double sizes = 0; // of all terms, since a part of the sum must fit, too
    for (const Term &term : number->getTerms()) {
      EXPECT_EQ(term.coefficient.denominator, 1);
      double product = double(std::abs(term.coefficient.numerator));
      for (auto [base, power] : term.monomial)
        product *= std::pow(evaluate(base, ranks, 0), double(power));
      sizes += product;
    }
    EXPECT_LT(sizes, 0x1p53) << toString(number);
  }
  EXPECT_GT(exact, 100);
}

} // namespace
