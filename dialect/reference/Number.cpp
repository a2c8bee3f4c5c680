//===- Number.cpp - Arithmetic in f64 with bounds, or typed ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Number.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>

using namespace mlir;
using namespace zero;

static const llvm::fltSemantics &semanticsOf(Type type) {
  return cast<FloatType>(type).getFloatSemantics();
}

double zero::getUnitRoundoff(Type type) {
  return std::ldexp(
      1.0, -static_cast<int>(APFloat::semanticsPrecision(semanticsOf(type))));
}

static double toDouble(APFloat number) {
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

/// What underflow can cost: the smallest subnormal.
static double getTiny(Type type) {
  return toDouble(APFloat::getSmallest(semanticsOf(type)));
}

double zero::roundTo(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  APFloat number(value);
  bool losesInfo;
  number.convert(semanticsOf(type), APFloat::rmNearestTiesToEven, &losesInfo);
  return toDouble(number);
}

Number Calculator::finish(double exact, double propagated, Type type) const {
  if (isTyped())
    return {roundTo(exact, type), 0};
  if (std::isnan(propagated)) // 0 times an infinite bound
    propagated = HUGE_VAL;
  // The rounded number may itself be off by what came in. Twice the roundoff:
  // the f64 value beside which the bound stands has been rounded, too.
  double rounding = 2 * getUnitRoundoff(type) * (std::abs(exact) + propagated) +
                    getTiny(type);
  return {exact, propagated + rounding};
}

// In typed arithmetic, results of f32 operations computed in f64 and rounded
// once more are those of f32: 53 >= 2 * 24 + 2 (Figueroa, 1995). That holds for
// all but fma.

Number Calculator::add(Number a, Number b, Type type) const {
  return finish(a.value + b.value, a.bound + b.bound, type);
}

Number Calculator::sub(Number a, Number b, Type type) const {
  return finish(a.value - b.value, a.bound + b.bound, type);
}

/// How far a * b can be off.
static double boundOfProduct(Number a, Number b) {
  if (a.bound == 0 && b.bound == 0)
    return 0;
  return std::abs(a.value) * b.bound + std::abs(b.value) * a.bound +
         a.bound * b.bound;
}

Number Calculator::mul(Number a, Number b, Type type) const {
  return finish(a.value * b.value, boundOfProduct(a, b), type);
}

Number Calculator::div(Number a, Number b, Type type) const {
  double size = std::abs(b.value);
  double propagated = 0;
  if (a.bound != 0 || b.bound != 0)
    propagated = b.bound >= size
                     ? HUGE_VAL
                     : (std::abs(a.value) * b.bound + size * a.bound) /
                           (size * (size - b.bound));
  return finish(a.value / b.value, propagated, type);
}

Number Calculator::fma(Number a, Number b, Number c, Type type) const {
  if (isTyped() && type.isF32())
    return {std::fma(static_cast<float>(a.value), static_cast<float>(b.value),
                     static_cast<float>(c.value)),
            0};
  return finish(std::fma(a.value, b.value, c.value),
                boundOfProduct(a, b) + c.bound, type);
}

Number Calculator::sqrt(Number a, Type type) const {
  double root = std::sqrt(a.value);
  double propagated = 0;
  // |sqrt(x) - sqrt(y)| is at most sqrt(|x - y|), and |x - y| / sqrt(x).
  if (a.bound != 0)
    propagated = root > 0 ? std::min(std::sqrt(a.bound), a.bound / root)
                          : std::sqrt(a.bound);
  return finish(root, propagated, type);
}

Number Calculator::convert(Number a, Type from, Type to) const {
  if (from == to || from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return a;
  return finish(a.value, a.bound, to);
}
