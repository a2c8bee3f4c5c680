//===- Bounds.h - Where a real number lies ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bounds of numbers over the reals. Range has the values of a program in
// f64, nan among them; these numbers are finite. An end that is infinite is a
// bound that is not known. Ends are rounded outwards.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_BOUNDS_H
#define ZERO_PASSES_PROVE_BOUNDS_H

#include <cstdint>
#include <limits>

namespace zero::prove {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Bounds {
  double least;
  double most;
  /// Whether the number is known not to be 0, also where an end is 0.
  bool notZero = false;

  static Bounds ofNumber(double value);
  static Bounds ofAll();
  static Bounds ofAllFrom0();
  static Bounds ofPositive();

  bool isNotNegative() const { return least >= 0; }
  bool isNotPositive() const { return most <= 0; }
  bool isNotZero() const { return notZero || least > 0 || most < 0; }
  bool isPositive() const { return least >= 0 && isNotZero(); }
  /// Positive or negative, and known which.
  bool hasSign() const {
    return isNotZero() && (isNotNegative() || isNotPositive());
  }
  bool holds(const Bounds &other) const {
    return least <= other.least && other.most <= most;
  }
};

Bounds add(Bounds a, Bounds b);
Bounds negate(Bounds a);
Bounds multiply(Bounds a, Bounds b);
/// |a| is not 0.
Bounds invert(Bounds a);
/// |a| is not 0 if |exponent| is negative.
Bounds raise(Bounds a, int64_t exponent);
/// |a| is not negative.
Bounds squareRoot(Bounds a);
Bounds getMagnitude(Bounds a);
Bounds minimum(Bounds a, Bounds b);
Bounds maximum(Bounds a, Bounds b);
/// Of one of both.
Bounds unite(Bounds a, Bounds b);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_BOUNDS_H
