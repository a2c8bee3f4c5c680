//===- AlgebraTest.cpp - Equal numbers are one object ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace zero;
using namespace zero::prove;

namespace {

class AlgebraTest : public testing::Test {
protected:
  Algebra algebra;
  Expr x = algebra.symbol("x");
  Expr y = algebra.symbol("y");
  Expr one = algebra.integer(1);
  Expr two = algebra.integer(2);
};

TEST_F(AlgebraTest, EqualPolynomialsAreOneObject) {
  Expr left = algebra.multiply(algebra.add(x, y), algebra.subtract(x, y));
  Expr right = algebra.subtract(algebra.multiply(x, x), algebra.multiply(y, y));
  EXPECT_EQ(left, right);
  EXPECT_NE(left, algebra.add(left, one));
  EXPECT_EQ(algebra.sum({x, y, x, algebra.negate(x)}), algebra.add(x, y));
  EXPECT_TRUE(algebra.subtract(x, x)->isZero());
  EXPECT_EQ(algebra.sum({}), algebra.integer(0));
}

// Where paths meet, the proof keeps a number that is nothing whatever others
// bring. It must not keep one whose other side a decision may choose.
TEST_F(AlgebraTest, OnlyWhatWasNeverWrittenIsNothing) {
  Expr nothing = algebra.undefined("slot 0 of @s");
  Expr chosen = algebra.operation("select", {x, y, nothing});
  for (Expr undefined : {nothing, chosen, algebra.add(nothing, x),
                         algebra.multiply(two, nothing)}) {
    EXPECT_TRUE(undefined->isUndefined());
    EXPECT_EQ(undefined->isNothing(), undefined == nothing);
  }
  EXPECT_FALSE(x->isNothing());
  EXPECT_EQ(algebra.substitute(chosen,
                               [&](BaseRef base) {
                                 return base == chosen->asBase() ? y : nullptr;
                               }),
            y);
}

TEST_F(AlgebraTest, FractionsAreExact) {
  Expr third = algebra.rational({1, 3});
  EXPECT_EQ(algebra.sum({third, third, third}), one);
  EXPECT_EQ(algebra.constant(0.375), algebra.rational({3, 8}));
  EXPECT_EQ(algebra.divide(x, two), algebra.multiply(algebra.constant(0.5), x));
  // 0.1 is no small fraction, and not what 1/10 is.
  EXPECT_NE(algebra.constant(0.1), algebra.rational({1, 10}));
  EXPECT_EQ(algebra.constant(0.1), algebra.constant(0.1));
}

TEST_F(AlgebraTest, CoefficientsThatDoNotFitStayOperations) {
  Expr big = algebra.rational({INT64_MAX, 1});
  Expr square = algebra.multiply(algebra.multiply(big, x), big);
  EXPECT_EQ(square, algebra.multiply(algebra.multiply(big, x), big));
  EXPECT_NE(square, algebra.multiply(big, x));
  Expr sum = algebra.add(big, big);
  EXPECT_FALSE(sum->asRational());
  EXPECT_EQ(algebra.evaluate(sum, [](BaseRef) { return std::nullopt; }),
            2.0 * double(INT64_MAX));
}

TEST_F(AlgebraTest, WhatMayBeNanNeverCancels) {
  Expr gradient = algebra.gradient(Epoch::all, /*over=*/0);
  Expr difference = algebra.subtract(gradient, gradient);
  EXPECT_FALSE(difference->isZero());
  EXPECT_EQ(difference, algebra.multiply(algebra.integer(0), gradient));
  EXPECT_EQ(difference, algebra.sum({gradient, algebra.negate(gradient)}));
  EXPECT_NE(algebra.add(x, difference), x);
  // An infinite gradient is infinite, and this sum is nan.
  EXPECT_NE(algebra.add(gradient, difference), gradient);
  EXPECT_EQ(algebra.multiply(two, difference), difference);
  EXPECT_EQ(algebra.evaluate(difference, [](BaseRef) { return 5.0; }), 0);
  for (double value : {NAN, INFINITY, -INFINITY})
    EXPECT_TRUE(std::isnan(
        algebra.evaluate(difference, [&](BaseRef) { return value; })));
  // Nothing that is 0 divides, and has no root that is taken out of it.
  EXPECT_TRUE(std::isnan(algebra.evaluate(algebra.divide(one, difference),
                                          [](BaseRef) { return NAN; })));
  EXPECT_TRUE(std::isnan(algebra.evaluate(algebra.squareRoot(difference),
                                          [](BaseRef) { return NAN; })));
}

TEST_F(AlgebraTest, WhatMayBeZeroIsNanOverItself) {
  Expr rate = algebra.base({BaseKind::input, "rate"});
  Expr square = algebra.multiply(rate, rate);
  Expr again = algebra.divide(square, rate);
  EXPECT_NE(again, rate);
  auto evaluateAt = [&](double value) {
    return algebra.evaluate(again, [&](BaseRef base) {
      return base->kind == BaseKind::input ? std::optional(value)
                                           : std::nullopt;
    });
  };
  EXPECT_TRUE(std::isnan(evaluateAt(0)));
  EXPECT_EQ(evaluateAt(5), 5);
  // However it came about, it is one number.
  Expr inverse = algebra.divide(one, rate);
  Expr over = algebra.overItself(rate);
  EXPECT_EQ(algebra.multiply(square, inverse), again);
  EXPECT_EQ(algebra.multiply(rate, algebra.multiply(rate, inverse)), again);
  EXPECT_EQ(algebra.multiply(rate, over), again);
  EXPECT_EQ(algebra.divide(rate, rate), over);
  EXPECT_EQ(algebra.multiply(over, over), over);
  EXPECT_EQ(algebra.divide(one, over), over);
  EXPECT_EQ(algebra.power(algebra.multiply(two, over), -2),
            algebra.multiply(algebra.rational({1, 4}), over));
  EXPECT_EQ(algebra.divide(algebra.divide(again, rate), rate),
            algebra.multiply(inverse, over));
  EXPECT_EQ(algebra.overItself(again), over);
  // Nothing that may be nan cancels.
  EXPECT_NE(algebra.subtract(again, again), algebra.integer(0));
  // What is inverted twice is not divided by.
  EXPECT_EQ(algebra.divide(one, inverse), rate);
  // A known number takes its place.
  auto replaceBy = [&](Expr number) {
    return algebra.substitute(again, [&](BaseRef base) {
      return base->name == "rate" ? number : nullptr;
    });
  };
  EXPECT_EQ(replaceBy(two), two);
  EXPECT_EQ(replaceBy(x), x);
  EXPECT_TRUE(std::isnan(algebra.evaluate(
      replaceBy(algebra.integer(0)), [](BaseRef) { return std::nullopt; })));
  EXPECT_EQ(replaceBy(algebra.add(x, y)),
            algebra.multiply(algebra.add(x, y),
                             algebra.overItself(algebra.add(x, y))));
}

// What gradients are divided by, and numbers.
TEST_F(AlgebraTest, WhatIsNeverZeroIsOneOverItself) {
  EXPECT_EQ(algebra.divide(x, x), one);
  Expr tenth = algebra.constant(0.1);
  EXPECT_EQ(algebra.divide(tenth, tenth), one);
  EXPECT_NE(
      algebra.divide(algebra.constant(INFINITY), algebra.constant(INFINITY)),
      one);
  Expr counted = algebra.base(
      {BaseKind::rankSum, "", Epoch::all, 0, 0, {algebra.multiply(x, x)}});
  EXPECT_EQ(algebra.divide(counted, counted), one);
  Expr missing = algebra.base({BaseKind::rankSum,
                               "",
                               Epoch::all,
                               0,
                               0,
                               {algebra.base({BaseKind::missing, ""})}});
  EXPECT_NE(algebra.divide(missing, missing), one);
  // One rank may have counted nothing.
  Expr share =
      algebra.base({BaseKind::symbol, "tokens", Epoch::all, /*over=*/1});
  EXPECT_NE(algebra.divide(share, share), one);
}

TEST_F(AlgebraTest, ZeroTimesUnknownIsUnknown) {
  Expr unknown = algebra.undefined("memory");
  Expr zero = algebra.integer(0);
  EXPECT_TRUE(algebra.multiply(zero, unknown)->isUndefined());
  EXPECT_TRUE(algebra.multiply(unknown, zero)->isUndefined());
  EXPECT_TRUE(algebra.add(x, unknown)->isUndefined());
  EXPECT_TRUE(algebra.operation("absf", {unknown})->isUndefined());
  EXPECT_TRUE(algebra.subtract(unknown, unknown)->isUndefined());
  EXPECT_TRUE(algebra.divide(unknown, unknown)->isUndefined());
  EXPECT_TRUE(algebra.multiply(zero, x)->isZero());
}

// Quotients may divide by 0, roots be of what is negative.
TEST_F(AlgebraTest, ZeroTimesWhatMayBeNanIsNotZero) {
  Expr zero = algebra.integer(0);
  Expr state = algebra.state("v");
  EXPECT_TRUE(algebra.multiply(zero, state)->isZero());
  for (Expr a : {algebra.constant(INFINITY), algebra.constant(NAN),
                 algebra.divide(one, zero), algebra.divide(one, state),
                 algebra.divide(one, algebra.add(state, one)),
                 algebra.squareRoot(algebra.integer(-1))})
    EXPECT_FALSE(algebra.multiply(zero, a)->isZero()) << toString(a);
  // Counts are at least 1.
  EXPECT_TRUE(algebra.multiply(zero, algebra.divide(one, x))->isZero());
  EXPECT_NE(algebra.constant(-0.0), algebra.constant(0.0));
}

TEST_F(AlgebraTest, PowersAreNoLoopsAndDoNotWrap) {
  int64_t large = int64_t(1) << 40;
  EXPECT_EQ(algebra.power(x, large),
            algebra.multiply(algebra.power(x, large / 2),
                             algebra.power(x, large / 2)));
  Expr power = x;
  for (int i = 0; i < 64; ++i)
    power = algebra.multiply(power, power);
  EXPECT_FALSE(power->asRational());
  EXPECT_EQ(algebra.multiply(algebra.power(x, 3), algebra.power(x, -3)), one);
}

TEST_F(AlgebraTest, RootsTakeOutSquares) {
  // The root of 4 (x^2 y) is 2 x times the root of y.
  Expr square = algebra.multiply(algebra.integer(4), algebra.power(x, 2));
  EXPECT_EQ(algebra.squareRoot(algebra.multiply(square, y)),
            algebra.multiply(algebra.multiply(two, x), algebra.squareRoot(y)));
  // Not of what may be negative.
  for (Expr a :
       {algebra.gradient(Epoch::all, 0), algebra.base({BaseKind::input, "lr"}),
        algebra.base({BaseKind::old, "counter"})})
    EXPECT_NE(algebra.squareRoot(algebra.multiply(a, a)), a);
  EXPECT_EQ(algebra.squareRoot(algebra.integer(9)), algebra.integer(3));
  EXPECT_FALSE(algebra.squareRoot(two)->asRational());
}

TEST_F(AlgebraTest, SubstitutionReachesOperands) {
  Expr inside = algebra.symmetric("minimumf", algebra.add(x, one), y);
  Expr replaced = algebra.substitute(
      algebra.multiply(inside, x),
      [&](BaseRef base) -> Expr { return base->name == "x" ? two : nullptr; });
  EXPECT_EQ(replaced,
            algebra.multiply(
                algebra.symmetric("minimumf", algebra.integer(3), y), two));
}

// What is left of an operation is what it would be if made of them at once,
// whichever of them was made first.
TEST_F(AlgebraTest, SubstitutionKeepsOneOrder) {
  auto replaceX = [&](Expr a, Expr by) {
    return algebra.substitute(a, [&](BaseRef base) -> Expr {
      return base->name == "x" ? by : nullptr;
    });
  };
  Expr late = algebra.symbol("late");
  for (const char *name : {"cmpf oeq", "cmpf une", "minimumf", "andi"}) {
    EXPECT_EQ(replaceX(algebra.symmetric(name, x, y), late),
              algebra.symmetric(name, late, y));
    EXPECT_EQ(replaceX(algebra.symmetric(name, x, late), two),
              algebra.symmetric(name, two, late));
  }
  // These are not to change places.
  EXPECT_EQ(replaceX(algebra.operation("cmpf ult", {x, y}), late),
            algebra.operation("cmpf ult", {late, y}));
  EXPECT_EQ(replaceX(algebra.operation("select", {y, x, late}), late), late);
  EXPECT_EQ(replaceX(algebra.operation("inverse", {x}), late),
            algebra.divide(one, late));
  EXPECT_EQ(
      replaceX(algebra.operation("sqrt", {x}), algebra.multiply(late, late)),
      algebra.squareRoot(algebra.multiply(late, late)));
}

TEST_F(AlgebraTest, FlagsFollowOperands) {
  constexpr AxisSet first = 1, second = 2, both = 3;
  Expr own = algebra.gradient(Epoch::current, first);
  EXPECT_EQ(own->getOwn(), first);
  EXPECT_TRUE(own->isElement());
  EXPECT_EQ(algebra.gradient(Epoch::current, 0)->getOwn(), 0u);
  Expr norm = algebra.base({BaseKind::sumOver,
                            "w",
                            Epoch::all,
                            second,
                            0,
                            {algebra.multiply(own, own)}});
  EXPECT_FALSE(norm->isElement());
  EXPECT_EQ(norm->getOwn(), both);
  Expr missing = algebra.base({BaseKind::missing, "", Epoch::all, both});
  EXPECT_EQ(missing->getOwn(), both);
  auto sumOfMissing = [&](AxisSet left) {
    return algebra.base(
        {BaseKind::rankSum, "", Epoch::all, left, 0, {missing}});
  };
  EXPECT_EQ(sumOfMissing(second)->getOwn(), second);
  EXPECT_EQ(sumOfMissing(0)->getOwn(), 0u);
}

/// Random expressions: what is one object has one value, and what arithmetic
/// makes has the value that doubles have.
TEST_F(AlgebraTest, RandomExpressionsHaveTheirValue) {
  std::mt19937 random(1);
  // Symbols are positive.
  std::vector<double> values = {0.75, 1.25, 3.0};
  std::vector<Expr> bases = {x, y, algebra.symbol("z")};
  auto valueOf = [&](BaseRef base) -> std::optional<double> {
    for (size_t i = 0; i < bases.size(); ++i)
      if (bases[i]->asBase() == base)
        return values[i];
    return std::nullopt;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::pair<Expr, double>> pool;
    for (size_t i = 0; i < bases.size(); ++i)
      pool.push_back({bases[i], values[i]});
    for (int step = 0; step < 6; ++step) {
      auto a = pool[random() % pool.size()];
      auto b = pool[random() % pool.size()];
      switch (random() % 5) {
      case 0:
        pool.push_back({algebra.add(a.first, b.first), a.second + b.second});
        break;
      case 1:
        pool.push_back(
            {algebra.multiply(a.first, b.first), a.second * b.second});
        break;
      case 2:
        pool.push_back(
            {algebra.subtract(a.first, b.first), a.second - b.second});
        break;
      case 3:
        if (b.second != 0)
          pool.push_back(
              {algebra.divide(a.first, b.first), a.second / b.second});
        break;
      case 4:
        pool.push_back({algebra.squareRoot(algebra.multiply(a.first, a.first)),
                        std::abs(a.second)});
        break;
      }
      auto [made, expected] = pool.back();
      double value = algebra.evaluate(made, valueOf);
      ASSERT_NEAR(value, expected, 1e-9 * std::max(1.0, std::abs(expected)))
          << toString(made);
    }
  }
}

} // namespace
