//===- BoundsTest.cpp - All real numbers that an operation may give -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds that leave out a number decide equalities wrongly. So each operation
// is computed for numbers of its operands, in a type that has more digits and
// more exponents than the ends, and the bounds must have the result.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Bounds.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <vector>

using namespace zero::prove;

namespace {

using Real = long double;
static_assert(std::numeric_limits<Real>::digits >= 64);
static_assert(std::numeric_limits<Real>::max_exponent > 2048);

const double kReals[] = {
    -kInfinity, -1.7e308, -1e200, -3, -1.0 / 3, -1e-200, -5e-324, 0,
    5e-324,     1e-300,   0.1,    1,  7,        1e155,   1.7e308, kInfinity};

class BoundsTest : public testing::Test {
protected:
  int64_t below(int64_t end) { return int64_t(random() % uint64_t(end)); }

  Bounds draw() {
    int64_t count = std::size(kReals);
    int64_t first = below(count), last = first + below(count - first);
    Bounds bounds{kReals[first], kReals[last]};
    // An infinite number is none: the bound at that end is not known.
    if (bounds.least == kInfinity || bounds.most == -kInfinity)
      return draw();
    bounds.notZero = below(3) == 0 && (bounds.least != 0 || bounds.most != 0);
    return bounds;
  }
  /// Numbers of |bounds|: those at its ends, and some between them.
  std::vector<double> list(Bounds bounds) {
    std::vector<double> numbers;
    for (double number : kReals)
      if (bounds.least <= number && number <= bounds.most &&
          std::isfinite(number) && !(bounds.notZero && number == 0))
        numbers.push_back(number);
    return numbers;
  }
  /// Checks that |find| of two bounds has what |compute| says of numbers in
  /// them. A pair of bounds for which |accepts| is false is left out.
  template <typename Find, typename Compute, typename Accepts>
  void check(Find find, Compute compute, Accepts accepts) {
    int checked = 0;
    for (int i = 0; i < 20000; ++i) {
      Bounds ofA = draw(), ofB = draw();
      if (!accepts(ofA, ofB))
        continue;
      Bounds found = find(ofA, ofB);
      ASSERT_FALSE(std::isnan(found.least) || std::isnan(found.most));
      for (double x : list(ofA))
        for (double y : list(ofB)) {
          Real value = compute(Real(x), Real(y));
          ++checked;
          ASSERT_TRUE(found.least <= value && value <= found.most &&
                      !(found.isNotZero() && value == 0))
              << x << " and " << y << " give " << double(value) << ", expected "
              << found.least << " to " << found.most
              << (found.notZero ? " and not 0" : "") << "; a is " << ofA.least
              << " to " << ofA.most << ", b is " << ofB.least << " to "
              << ofB.most;
        }
    }
    EXPECT_GT(checked, 10000);
  }
  template <typename Find, typename Compute>
  void check(Find find, Compute compute) {
    check(find, compute, [](Bounds, Bounds) { return true; });
  }

  std::mt19937_64 random{13};
};

} // namespace

TEST_F(BoundsTest, SumsAndProducts) {
  check([](Bounds a, Bounds b) { return add(a, b); },
        [](Real x, Real y) { return x + y; });
  check([](Bounds a, Bounds) { return negate(a); },
        [](Real x, Real) { return -x; });
  check([](Bounds a, Bounds b) { return multiply(a, b); },
        [](Real x, Real y) { return x * y; });
}

TEST_F(BoundsTest, InversesAndPowers) {
  auto isNotZero = [](Bounds a, Bounds) { return a.isNotZero(); };
  check([](Bounds a, Bounds) { return invert(a); },
        [](Real x, Real) { return 1 / x; }, isNotZero);
  for (int64_t exponent : {0, 1, 2, 3, 8}) {
    check([&](Bounds a, Bounds) { return raise(a, exponent); },
          [&](Real x, Real) {
            Real power = 1;
            for (int64_t i = 0; i < exponent; ++i)
              power *= x;
            return power;
          });
    check([&](Bounds a, Bounds) { return raise(a, -exponent); },
          [&](Real x, Real) {
            Real power = 1;
            for (int64_t i = 0; i < exponent; ++i)
              power /= x;
            return power;
          },
          isNotZero);
  }
}

TEST_F(BoundsTest, RootsAndMagnitudes) {
  check([](Bounds a, Bounds) { return squareRoot(a); },
        [](Real x, Real) { return std::sqrt(x); },
        [](Bounds a, Bounds) { return a.isNotNegative(); });
  check([](Bounds a, Bounds) { return getMagnitude(a); },
        [](Real x, Real) { return std::fabs(x); });
}

TEST_F(BoundsTest, Choices) {
  check([](Bounds a, Bounds b) { return minimum(a, b); },
        [](Real x, Real y) { return std::min(x, y); });
  check([](Bounds a, Bounds b) { return maximum(a, b); },
        [](Real x, Real y) { return std::max(x, y); });
  check([](Bounds a, Bounds b) { return unite(a, b); },
        [](Real x, Real) { return x; });
  check([](Bounds a, Bounds b) { return unite(a, b); },
        [](Real, Real y) { return y; });
}
