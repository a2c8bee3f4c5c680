//===- Bounds.cpp - Where a real number lies ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Bounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

using namespace zero;
using namespace zero::prove;

/// A number that is not less than |end|, which was computed with an error of a
/// few units in the last place. What overflows downwards has a bound still.
static double roundUp(double end) {
  using Limits = std::numeric_limits<double>;
  constexpr double kError = 0x1p-50;
  if (end == -kInfinity)
    return Limits::lowest();
  if (end != 0 && std::abs(end) < Limits::min())
    return end < 0 ? 0 : Limits::min();
  return end + std::abs(end) * kError;
}

/// Of ends that are exact if they are 0.
static Bounds widen(double least, double most, bool notZero) {
  return {-roundUp(-least), roundUp(most), notZero};
}

Bounds Bounds::ofNumber(double value) { return {value, value, value != 0}; }
Bounds Bounds::ofAll() { return {-kInfinity, kInfinity}; }
Bounds Bounds::ofAllFrom0() { return {0, kInfinity}; }
Bounds Bounds::ofPositive() { return {0, kInfinity, true}; }

Bounds prove::add(Bounds a, Bounds b) {
  // What is not 0 stays so if the other one has its sign.
  bool bothFrom0 = a.isNotNegative() && b.isNotNegative();
  bool bothTo0 = a.isNotPositive() && b.isNotPositive();
  return widen(a.least + b.least, a.most + b.most,
               (bothFrom0 || bothTo0) && (a.isNotZero() || b.isNotZero()));
}

Bounds prove::negate(Bounds a) { return {-a.most, -a.least, a.notZero}; }

Bounds prove::multiply(Bounds a, Bounds b) {
  // Numbers are finite: 0 times one without a bound is 0.
  // What underflows keeps its sign, so that an end of 0 is exact.
  auto product = [](double x, double y) {
    if (x == 0 || y == 0)
      return 0.0;
    constexpr double kLeast = std::numeric_limits<double>::denorm_min();
    double both = x * y;
    return both == 0 ? std::copysign(kLeast, both) : both;
  };
  double ends[] = {product(a.least, b.least), product(a.least, b.most),
                   product(a.most, b.least), product(a.most, b.most)};
  return widen(*std::min_element(std::begin(ends), std::end(ends)),
               *std::max_element(std::begin(ends), std::end(ends)),
               a.isNotZero() && b.isNotZero());
}

Bounds prove::invert(Bounds a) {
  if (a.isNotNegative())
    return widen(1 / a.most, a.least == 0 ? kInfinity : 1 / a.least, true);
  if (a.isNotPositive())
    return negate(invert(negate(a)));
  return {-kInfinity, kInfinity, true};
}

Bounds prove::raise(Bounds a, int64_t exponent) {
  // Larger powers do not occur.
  constexpr int64_t kLargest = 64;
  if (exponent < -kLargest || exponent > kLargest)
    return {exponent % 2 == 0 ? 0 : -kInfinity, kInfinity, a.isNotZero()};
  if (exponent < 0)
    return invert(raise(a, -exponent));
  if (exponent % 2 == 0)
    a = getMagnitude(a);
  Bounds power = Bounds::ofNumber(1);
  for (int64_t i = 0; i < exponent; ++i)
    power = multiply(power, a);
  return power;
}

Bounds prove::squareRoot(Bounds a) {
  return widen(std::sqrt(a.least), std::sqrt(a.most), a.isNotZero());
}

Bounds prove::getMagnitude(Bounds a) {
  if (a.isNotNegative())
    return a;
  if (a.isNotPositive())
    return negate(a);
  return {0, std::max(-a.least, a.most), a.notZero};
}

Bounds prove::minimum(Bounds a, Bounds b) {
  return {std::min(a.least, b.least), std::min(a.most, b.most),
          a.isNotZero() && b.isNotZero()};
}

Bounds prove::maximum(Bounds a, Bounds b) {
  return {std::max(a.least, b.least), std::max(a.most, b.most),
          a.isNotZero() && b.isNotZero()};
}

Bounds prove::unite(Bounds a, Bounds b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most),
          a.isNotZero() && b.isNotZero()};
}
