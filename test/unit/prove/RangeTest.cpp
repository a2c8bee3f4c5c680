//===- RangeTest.cpp - All values that a number may have ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A range that lacks a value decides selections wrongly. So each operation is
// evaluated in f64 for numbers of its operands' ranges, and the range must have
// the result.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Range.h"

#include "passes/prove/Bounds.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace zero::prove;

namespace {

const double kNumbers[] = {-kInfinity, -1e300, -2, -0.5,  0,
                           0.25,       1,      3,  1e200, kInfinity};

class RangeTest : public testing::Test {
protected:
  int64_t below(int64_t end) { return int64_t(random() % uint64_t(end)); }

  Range draw() {
    if (below(12) == 0)
      return Range::ofNumber(NAN);
    int64_t count = std::size(kNumbers);
    int64_t first = below(count), last = first + below(count - first);
    return {kNumbers[first], kNumbers[last], below(3) == 0};
  }
  /// Numbers of |range|: those at its ends, some between them, and nan.
  std::vector<double> list(Range range) {
    std::vector<double> numbers;
    for (double number : kNumbers)
      if (range.has(number))
        numbers.push_back(number);
    if (range.nan)
      numbers.push_back(NAN);
    return numbers;
  }
  /// Checks that the range of |number| has what |compute| says of a and b,
  /// which is the same in f64.
  template <typename Compute> void check(Expr number, Compute compute) {
    for (int i = 0; i < 3000; ++i) {
      Range ofA = draw(), ofB = draw();
      Range found =
          evaluateRange(number, [&](BaseRef base) -> std::optional<Range> {
            if (base == a->asBase())
              return ofA;
            return base == b->asBase() ? std::optional(ofB) : std::nullopt;
          });
      for (double x : list(ofA))
        for (double y : list(ofB)) {
          double value = compute(x, y);
          ASSERT_TRUE(std::isnan(value) ? found.nan : found.has(value))
              << toString(number) << " of " << x << " and " << y << " is "
              << value << ", and the range is " << found.least << " to "
              << found.most << (found.nan ? " or nan" : "") << "; a is "
              << ofA.least << " to " << ofA.most << ", b is " << ofB.least
              << " to " << ofB.most;
        }
    }
  }

  std::mt19937_64 random{11};
  Algebra algebra;
  // Numbers that may be infinite and nan.
  Expr a = algebra.gradient(Epoch::all, 1), b = algebra.gradient(Epoch::all, 2);
};

} // namespace

TEST_F(RangeTest, PolynomialsHaveAllTheirValues) {
  check(algebra.add(a, b), [](double x, double y) { return x + y; });
  check(algebra.subtract(a, b), [](double x, double y) { return x - y; });
  check(algebra.multiply(a, b), [](double x, double y) { return x * y; });
  check(algebra.power(a, 2), [](double x, double) { return x * x; });
  check(algebra.multiply(algebra.integer(3), a),
        [](double x, double) { return 3 * x; });
}

// What a program tests for being finite.
TEST_F(RangeTest, ANumberMinusItselfIsZeroOrNan) {
  check(algebra.minusItself(a), [](double x, double) { return x - x; });
  Expr differs = algebra.operation(
      "cmpf une", {algebra.integer(0), algebra.minusItself(a)});
  check(differs, [](double x, double) { return x - x != 0 ? 1.0 : 0.0; });
  Expr sum = algebra.minusItself(algebra.add(a, b));
  check(sum, [](double x, double y) { return (x + y) - (x + y); });
  ASSERT_FALSE(algebra.subtract(a, a)->isZero());
  check(algebra.subtract(a, a), [](double x, double) { return x - x; });
  Expr same = algebra.add(a, b);
  check(algebra.subtract(same, same),
        [](double x, double y) { return (x - x) + (y - y); });
}

TEST_F(RangeTest, OperationsHaveAllTheirValues) {
  auto of = [&](const char *name) { return algebra.operation(name, {a, b}); };
  check(of("addf"), [](double x, double y) { return x + y; });
  check(of("mulf"), [](double x, double y) { return x * y; });
  check(of("copysign"), [](double x, double y) { return std::copysign(x, y); });
  check(of("cmpf olt"), [](double x, double y) { return double(x < y); });
  check(of("cmpf oeq"), [](double x, double y) { return double(x == y); });
  check(of("cmpf une"), [](double x, double y) { return double(x != y); });
  check(of("cmpf uge"), [](double x, double y) { return double(!(x < y)); });
  check(of("cmpf uno"), [](double x, double y) {
    return double(std::isnan(x) || std::isnan(y));
  });
  check(of("minnumf"), [](double x, double y) { return std::fmin(x, y); });
  check(of("maxnumf"), [](double x, double y) { return std::fmax(x, y); });
  check(algebra.operation("absf", {a}),
        [](double x, double) { return std::abs(x); });
  check(algebra.operation("sqrt", {a}),
        [](double x, double) { return std::sqrt(x); });
  check(algebra.operation("select", {of("cmpf olt"), a, b}),
        [](double x, double y) { return x < y ? x : y; });
  check(algebra.operation("andi", {of("cmpf olt"), of("cmpf une")}),
        [](double x, double y) { return double(x < y && x != y); });
  check(algebra.operation("ori", {of("cmpf olt"), of("cmpf uno")}),
        [](double x, double y) {
          return double(x < y || std::isnan(x) || std::isnan(y));
        });
  auto hasNan = [](double x, double y) {
    return std::isnan(x) || std::isnan(y);
  };
  check(of("minimumf"), [&](double x, double y) {
    return hasNan(x, y) ? NAN : std::min(x, y);
  });
  check(of("maximumf"), [&](double x, double y) {
    return hasNan(x, y) ? NAN : std::max(x, y);
  });
  check(algebra.operation("inverse", {a}),
        [](double x, double) { return 1 / x; });
  check(algebra.operation("divf", {a, a}),
        [](double x, double) { return x / x; });
}
