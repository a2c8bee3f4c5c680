//===- RealNumbersTest.cpp - Equal numbers have equal values --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random numbers are written in two ways. Whatever is shown to be equal must
// have equal values.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/RealNumbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace zero::prove;

namespace {

class RealNumbersTest : public testing::Test {
protected:
  static Facts makeFacts() {
    Facts facts;
    facts.isFinite = true;
    facts.states["v"] = Bounds::ofAllFrom0();
    facts.counters["t"] = {0, 1};
    return facts;
  }

  Algebra algebra;
  Expr gradient = algebra.gradient(Epoch::all, /*over=*/0);
  Expr m = algebra.state("m"), v = algebra.state("v");
  Expr t = algebra.base({BaseKind::old, "t"});
  Expr rate = algebra.base({BaseKind::input, "rate"});
  Expr one = algebra.integer(1), zero = algebra.integer(0);
  Expr c = algebra.subtract(one, algebra.multiply(algebra.constant(0.999), t));
  Expr sum = algebra.base({BaseKind::sumOver,
                           "w",
                           Epoch::all,
                           0,
                           0,
                           {algebra.multiply(gradient, gradient)}});
  RealNumbers numbers{algebra, makeFacts()};

  Expr compare(const char *predicate, Expr a, Expr b) {
    return algebra.operation((llvm::Twine("cmpf ") + predicate).str(), {a, b});
  }
  Expr select(Expr condition, Expr a, Expr b) {
    return algebra.operation("select", {condition, a, b});
  }
  Expr minimum(Expr a, Expr b) { return algebra.symmetric("minimumf", a, b); }
  Expr maximum(Expr a, Expr b) { return algebra.symmetric("maximumf", a, b); }

  double evaluate(Expr a, llvm::ArrayRef<double> values) {
    return algebra.evaluate(a, [&](BaseRef base) -> std::optional<double> {
      Expr known[] = {gradient, m, v, t, rate, sum};
      for (auto [i, each] : llvm::enumerate(known))
        if (each->asBase() == base)
          return values[i];
      return std::nullopt;
    });
  }
  std::vector<double> draw(std::mt19937 &random);
  bool hasTie(Expr a, llvm::ArrayRef<double> values);
  Expr make(std::mt19937 &random, int depth);
  Expr rewrite(std::mt19937 &random, Expr a, Expr b, bool isRight);
};

std::vector<double> RealNumbersTest::draw(std::mt19937 &random) {
  std::uniform_real_distribution<double> around(-2, 2), unit(0, 1);
  std::vector<double> values = {around(random),   around(random),
                                2 * unit(random), unit(random),
                                around(random),   3 * unit(random)};
  // Ends of what is known, and zeros.
  if (random() % 3 == 0)
    values[random() % values.size()] = 0;
  if (random() % 8 == 0)
    values[3] = 1;
  return values;
}

/// Whether numbers that are compared are so close that rounding decides.
bool RealNumbersTest::hasTie(Expr a, llvm::ArrayRef<double> values) {
  bool found = false;
  visitBases(a, [&](BaseRef base) {
    if (base->kind != BaseKind::operation || base->operands.size() != 2)
      return;
    double x = evaluate(base->operands[0], values);
    double y = evaluate(base->operands[1], values);
    found |= std::abs(x - y) <= 1e-7 * (1 + std::abs(x) + std::abs(y));
  });
  return found;
}

/// A number that is neither too small nor too large for doubles.
Expr RealNumbersTest::make(std::mt19937 &random, int depth) {
  Expr leaves[] = {
      gradient,           m, v, t, rate, sum, one, c, algebra.constant(0.3),
      algebra.integer(-2)};
  if (depth == 0)
    return leaves[random() % std::size(leaves)];
  Expr a = make(random, depth - 1), b = make(random, depth - 1);
  switch (random() % 9) {
  case 0:
    return algebra.add(a, b);
  case 1:
    return algebra.multiply(a, b);
  case 2:
    return algebra.divide(a, b);
  case 3:
    return algebra.squareRoot(a);
  case 4:
    return minimum(a, b);
  case 5:
    return maximum(a, b);
  case 6:
    return algebra.magnitude(a);
  case 7:
    return select(compare("olt", a, b), b, make(random, depth - 1));
  default:
    return algebra.subtract(a, b);
  }
}

/// A number of |a| and |b| in another form, or one that looks like it.
Expr RealNumbersTest::rewrite(std::mt19937 &random, Expr a, Expr b,
                              bool isRight) {
  switch (random() % 9) {
  case 0: // of a minimum
    return isRight ? select(compare("olt", a, b), a, b)
                   : select(compare("olt", a, b), b, a);
  case 1:
    return isRight ? select(compare("ogt", a, b), b, a)
                   : select(compare("ogt", a, m), b, a);
  case 2:
    return select(compare(isRight ? "oge" : "ole", a, b), b, a);
  case 3: // of a quotient
    return algebra.divide(algebra.multiply(a, c), isRight
                                                      ? algebra.multiply(b, c)
                                                      : algebra.multiply(b, t));
  case 4: // of a sum and a quotient
    return algebra.divide(
        algebra.add(algebra.multiply(a, c), isRight ? b : algebra.negate(b)),
        c);
  case 5: // of a root
    return algebra.divide(algebra.squareRoot(algebra.multiply(a, c)),
                          isRight ? algebra.squareRoot(c) : c);
  case 6: // of a magnitude
    return isRight ? select(compare("olt", a, zero), algebra.negate(a), a)
                   : select(compare("olt", a, zero), a, algebra.negate(a));
  case 7: // of a root of what is not negative
    return algebra.squareRoot(isRight ? maximum(a, zero) : minimum(a, zero));
  default:
    return algebra.squareRoot(
        algebra.multiply(algebra.magnitude(a), algebra.magnitude(a)));
  }
}

TEST_F(RealNumbersTest, EqualNumbersHaveEqualValues) {
  std::mt19937 random(7);
  int equal = 0, different = 0, compared = 0;
  for (int round = 0; round < 6000; ++round) {
    Expr a = make(random, int(random() % 3)),
         b = make(random, int(random() % 2));
    Expr forms[] = {minimum(a, b),
                    algebra.divide(a, b),
                    algebra.add(a, algebra.divide(b, c)),
                    algebra.squareRoot(a),
                    algebra.magnitude(a),
                    rewrite(random, a, b, true),
                    rewrite(random, a, b, false)};
    Expr x = forms[random() % std::size(forms)];
    Expr y = rewrite(random, a, b, random() % 4 != 0);
    // Below other operations, too.
    if (random() % 3 == 0) {
      x = algebra.divide(algebra.multiply(x, rate),
                         algebra.add(algebra.magnitude(x), one));
      y = algebra.divide(algebra.multiply(y, rate),
                         algebra.add(algebra.magnitude(y), one));
    }
    if (x == y)
      continue;
    if (!RealNumbers(algebra, makeFacts()).areEqual(x, y)) {
      ++different;
      continue;
    }
    ++equal;
    for (int i = 0; i < 20; ++i) {
      std::vector<double> values = draw(random);
      if (hasTie(x, values) || hasTie(y, values))
        continue;
      double first = evaluate(x, values), second = evaluate(y, values);
      // The sign of an infinite number is that of a 0, which is not known.
      if (std::isnan(first) || std::isnan(second)) {
        ASSERT_FALSE(std::isfinite(first) || std::isfinite(second))
            << toString(x) << "\n"
            << toString(y);
        continue;
      }
      if (std::isinf(first) || std::isinf(second) || std::abs(first) > 1e6)
        continue;
      ++compared;
      ASSERT_NEAR(first, second, 1e-6 * (1 + std::abs(first)))
          << toString(x) << "\n"
          << toString(y);
    }
  }
  // The test is one only if it finds equal numbers and others.
  EXPECT_GT(equal, 300);
  EXPECT_GT(different, 1000);
  EXPECT_GT(compared, 3000);
}

TEST_F(RealNumbersTest, NormsAreClippedBySelection) {
  Expr norm = algebra.add(algebra.squareRoot(sum), algebra.constant(1e-6));
  Expr ratio = algebra.divide(one, norm);
  Expr clip = minimum(ratio, one);
  EXPECT_TRUE(
      numbers.areEqual(clip, select(compare("ogt", norm, one), ratio, one)));
  EXPECT_TRUE(
      numbers.areEqual(clip, select(compare("ole", norm, one), one, ratio)));
  EXPECT_FALSE(
      numbers.areEqual(clip, select(compare("olt", norm, one), ratio, one)));
  EXPECT_FALSE(
      numbers.areEqual(clip, select(compare("ogt", norm, one), one, ratio)));
  // Without the outcome a sum may be nan: "nan > 1" is false, so the selection
  // is 1, and the minimum is nan.
  RealNumbers unknown(algebra, {});
  EXPECT_FALSE(
      unknown.areEqual(clip, select(compare("ogt", norm, one), ratio, one)));
}

TEST_F(RealNumbersTest, SelectionsAgreeWhereNumbersAreEqual) {
  Expr less = select(compare("ogt", m, v), gradient, t);
  EXPECT_TRUE(
      numbers.areEqual(less, select(compare("ole", m, v), t, gradient)));
  EXPECT_TRUE(
      numbers.areEqual(less, select(compare("olt", v, m), gradient, t)));
  EXPECT_FALSE(
      numbers.areEqual(less, select(compare("oge", m, v), gradient, t)));
  // Unless it is the same number.
  Expr most = maximum(m, v);
  for (const char *predicate : {"ogt", "oge", "ugt", "uge"})
    EXPECT_TRUE(numbers.areEqual(most, select(compare(predicate, m, v), m, v)));
  EXPECT_FALSE(numbers.areEqual(most, select(compare("ogt", m, v), v, m)));
}

TEST_F(RealNumbersTest, BoundsFollowFromFacts) {
  EXPECT_TRUE(numbers.getBounds(c).isPositive());
  EXPECT_TRUE(numbers.getBounds(algebra.add(v, one)).isPositive());
  EXPECT_FALSE(numbers.getBounds(algebra.subtract(one, t)).isPositive());
  EXPECT_FALSE(numbers.getBounds(m).isNotNegative());
  EXPECT_TRUE(numbers.getBounds(algebra.multiply(m, m)).isNotNegative());
  EXPECT_FALSE(numbers.getBounds(algebra.multiply(m, m)).isPositive());
  // Ends that underflow are none.
  Bounds tiny{1e-300, 1e-300};
  EXPECT_TRUE(multiply(tiny, tiny).isPositive());
  EXPECT_GT(multiply(tiny, tiny).most, 0);
  EXPECT_LT(multiply(tiny, negate(tiny)).least, 0);
  Bounds large{1e300, 1e300};
  EXPECT_TRUE(multiply(large, large).isPositive());
  EXPECT_TRUE(std::isfinite(multiply(large, large).least));
}

} // namespace
