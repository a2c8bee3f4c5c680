//===- LostBitsTest.cpp - Digits that a sum loses -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A term that is added and taken away again takes digits of the others with it.
// Sums are computed in f64, and no sum may have lost more digits than the proof
// counts.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Magnitudes.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace zero::prove;

namespace {

using Real = long double;
static_assert(std::numeric_limits<Real>::digits >= 64);

class LostBitsTest : public testing::Test {
protected:
  static constexpr int kVariables = 3;

  int64_t below(int64_t end) { return int64_t(random() % uint64_t(end)); }

  /// A multiple of a variable, by up to 2^20.
  Expr drawTerm() {
    int64_t multiple = (1 + below(3)) << below(21);
    Expr variable = variables[below(kVariables)];
    return algebra.multiply(algebra.integer(below(2) ? multiple : -multiple),
                            variable);
  }

  /// |a| where the variables are |values|.
  Real evaluate(Expr a, const std::vector<Real> &values, bool isOfSizes) {
    Real sum = 0;
    for (const Term &term : a->getTerms()) {
      Real product = Real(term.coefficient.asDouble());
      for (auto [base, power] : term.monomial)
        for (int i = 0; i < kVariables; ++i)
          if (variables[i]->asBase() == base)
            product *= std::pow(values[size_t(i)], Real(power));
      sum += isOfSizes ? std::abs(product) : product;
    }
    return sum;
  }

  std::mt19937_64 random{3};
  Algebra algebra;
  const Expr variables[kVariables] = {algebra.symbol("x"), algebra.symbol("y"),
                                      algebra.symbol("z")};
};

TEST_F(LostBitsTest, NoSumLosesMore) {
  int lossy = 0, gone = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<Expr> addends;
    Expr sum = algebra.integer(0);
    for (int64_t left = 2 + below(4); left > 0; --left) {
      // Some take away what is there.
      Expr addend = sum->isZero() || below(3) > 0
                        ? drawTerm()
                        : algebra.subtract(drawTerm(), sum);
      addends.push_back(addend);
      sum = algebra.add(sum, addend);
    }
    int lost = getLostBits(algebra, addends, sum);
    if (lost > 60) { // a term is gone, and with it all that was known
      ++gone;
      continue;
    }
    lossy += lost > 8;
    std::vector<Real> values;
    for (int v = 0; v < kVariables; ++v)
      values.push_back(Real(1 + std::ldexp(double(random() >> 12), -52)));
    double computed = 0;
    for (Expr addend : addends)
      computed += double(evaluate(addend, values, /*isOfSizes=*/false));
    Real error = std::abs(computed - evaluate(sum, values, false));
    // Each addend and each of their sums is rounded once, and is at most as
    // large as all multiples together.
    Real most = 2 * Real(addends.size() * addends.size()) *
                std::ldexp(evaluate(sum, values, /*isOfSizes=*/true), lost + 1);
    ASSERT_LE(error, std::ldexp(most, -53))
        << toString(sum) << " with " << lost << " lost bits";
  }
  EXPECT_GT(lossy, 300); // or the test says nothing
  EXPECT_GT(gone, 1000);
}

// What is gone is lost whole, and what is only added loses nothing.
TEST_F(LostBitsTest, Ends) {
  Expr x = variables[0], y = variables[1];
  Expr large = algebra.multiply(algebra.integer(1 << 20), y);
  Expr most = algebra.multiply(algebra.integer(1 - (1 << 20)), y);
  Expr with = algebra.add(x, large);
  EXPECT_EQ(getLostBits(algebra, {with, most}, algebra.add(with, most)), 20);
  EXPECT_EQ(getLostBits(algebra, {x, large}, with), 0);
  EXPECT_GT(getLostBits(algebra, {with, algebra.negate(large)}, x), 1000);
}

} // namespace
