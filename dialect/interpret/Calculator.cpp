//===- Calculator.cpp - Arithmetic, typed or with bounds ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Calculator.h"

#include <cmath>
#include <limits>

using namespace zero;
using mlir::arith::CmpFPredicate;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

Number Calculator::finish(const Format &format, double value,
                          double inherited) {
  // Equal operands give the same number, without a rounding. f64 is an
  // exception: there |value| itself is rounded.
  if (inherited == 0 && format.precision < kF64.precision &&
      roundTo(format, value) == value)
    return {value, 0};
  double magnitude = std::fabs(value) + inherited;
  // The reference computes in f64, too.
  double roundoff = format.getUnitRoundoff() + kF64.getUnitRoundoff();
  double bound = inherited + roundoff * magnitude + format.getTiny();
  if (!(magnitude + bound <= format.largest))
    bound = kInfinity;
  return {value, bound};
}

double Calculator::getSumFactor(const Format &format, int64_t addends) {
  if (addends <= 1)
    return 0;
  double roundoffs =
      (addends - 1) * (format.getUnitRoundoff() + kF64.getUnitRoundoff());
  return roundoffs < 1 ? roundoffs / (1 - roundoffs) : kInfinity;
}

double Calculator::getSumBound(const Format &format, int64_t addends,
                               double magnitude) {
  // One addend is its own sum, even if its magnitude is infinite.
  double factor = getSumFactor(format, addends);
  return factor > 0 ? factor * magnitude : 0;
}

//===----------------------------------------------------------------------===//
// Operations that round
//===----------------------------------------------------------------------===//

/// Computes as the machine does: f64 in double. All other types are computed in
/// float, and rounded from there if they are narrower.
template <typename Operation>
static Number compute(const Format &format, Operation operation) {
  if (format.precision == kF64.precision)
    return {operation(double()), 0};
  return {roundTo(format, operation(float())), 0};
}

Number Calculator::convert(const Format &from, const Format &to,
                           Number x) const {
  if (to.contains(from))
    return x;
  if (isTyped())
    return {roundTo(to, x.value), 0};
  return finish(to, x.value, x.bound);
}

Number Calculator::add(const Format &format, Number a, Number b) const {
  if (isTyped())
    return compute(format, [&](auto type) {
      using T = decltype(type);
      return static_cast<T>(a.value) + static_cast<T>(b.value);
    });
  return finish(format, a.value + b.value, a.bound + b.bound);
}

Number Calculator::sub(const Format &format, Number a, Number b) const {
  return add(format, a, neg(b));
}

Number Calculator::mul(const Format &format, Number a, Number b) const {
  if (isTyped())
    return compute(format, [&](auto type) {
      using T = decltype(type);
      return static_cast<T>(a.value) * static_cast<T>(b.value);
    });
  return finish(format, a.value * b.value,
                std::fabs(a.value) * b.bound + std::fabs(b.value) * a.bound +
                    a.bound * b.bound);
}

Number Calculator::div(const Format &format, Number a, Number b) const {
  if (isTyped())
    return compute(format, [&](auto type) {
      using T = decltype(type);
      return static_cast<T>(a.value) / static_cast<T>(b.value);
    });
  double quotient = a.value / b.value;
  double inherited = 0;
  if (b.bound > 0 && !(b.bound < std::fabs(b.value)))
    inherited = kInfinity; // the denominator may be zero
  else if (a.bound > 0 || b.bound > 0)
    inherited = (a.bound + std::fabs(quotient) * b.bound) /
                (std::fabs(b.value) - b.bound);
  return finish(format, quotient, inherited);
}

Number Calculator::fma(const Format &format, Number a, Number b,
                       Number c) const {
  if (isTyped())
    return compute(format, [&](auto type) {
      using T = decltype(type);
      return std::fma(static_cast<T>(a.value), static_cast<T>(b.value),
                      static_cast<T>(c.value));
    });
  return finish(format, std::fma(a.value, b.value, c.value),
                std::fabs(a.value) * b.bound + std::fabs(b.value) * a.bound +
                    a.bound * b.bound + c.bound);
}

Number Calculator::sqrt(const Format &format, Number a) const {
  if (isTyped())
    return compute(format, [&](auto type) {
      return std::sqrt(static_cast<decltype(type)>(a.value));
    });
  double root = std::sqrt(a.value);
  double inherited = 0;
  if (a.bound > 0)
    // (x - a) / (sqrt(x) + sqrt(a)). If the bound reaches zero, x may be
    // negative.
    inherited = a.bound < a.value
                    ? a.bound / (root + std::sqrt(a.value - a.bound))
                    : kInfinity;
  return finish(format, root, inherited);
}

//===----------------------------------------------------------------------===//
// Operations that choose
//===----------------------------------------------------------------------===//

Number Calculator::abs(Number a) const { return {std::fabs(a.value), a.bound}; }

Number Calculator::copySign(Number magnitude, Number sign) const {
  bool certain = sign.bound == 0 || sign.bound < std::fabs(sign.value);
  // As kernels do: the sign of a NaN depends on the machine.
  return {
      std::copysign(magnitude.value, std::isnan(sign.value) ? 0 : sign.value),
      certain ? magnitude.bound
              : 2 * std::fabs(magnitude.value) + magnitude.bound};
}

Number Calculator::minimum(Number a, Number b, bool ignoreNaN) const {
  if (std::isnan(a.value) || std::isnan(b.value))
    return std::isnan(a.value) == ignoreNaN ? b : a;
  // -0 is less than 0.
  bool first =
      a.value < b.value || (a.value == b.value && std::signbit(a.value));
  double distance = std::fabs(a.value - b.value);
  if (distance > a.bound + b.bound)
    return first ? a : b;
  return {first ? a.value : b.value, std::max(a.bound, b.bound)};
}

Number Calculator::maximum(Number a, Number b, bool ignoreNaN) const {
  return neg(minimum(neg(a), neg(b), ignoreNaN));
}

static bool isTrue(CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case CmpFPredicate::AlwaysFalse:
    return false;
  case CmpFPredicate::OEQ:
    return a == b;
  case CmpFPredicate::OGT:
    return a > b;
  case CmpFPredicate::OGE:
    return a >= b;
  case CmpFPredicate::OLT:
    return a < b;
  case CmpFPredicate::OLE:
    return a <= b;
  case CmpFPredicate::ONE:
    return !unordered && a != b;
  case CmpFPredicate::ORD:
    return !unordered;
  case CmpFPredicate::UEQ:
    return unordered || a == b;
  case CmpFPredicate::UGT:
    return !(a <= b);
  case CmpFPredicate::UGE:
    return !(a < b);
  case CmpFPredicate::ULT:
    return !(a >= b);
  case CmpFPredicate::ULE:
    return !(a > b);
  case CmpFPredicate::UNE:
    return a != b;
  case CmpFPredicate::UNO:
    return unordered;
  case CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

Number Calculator::compare(CmpFPredicate predicate, Number a, Number b) const {
  double slack = a.bound + b.bound;
  // The comparison is written so that an infinite bound or a NaN is uncertain.
  bool certain = slack == 0 || std::fabs(a.value - b.value) > slack;
  return {isTrue(predicate, a.value, b.value) ? 1.0 : 0.0, certain ? 0.0 : 1.0};
}

Number Calculator::select(Number condition, Number a, Number b) const {
  Number chosen = condition.value != 0 ? a : b;
  if (condition.bound == 0)
    return chosen;
  Number other = condition.value != 0 ? b : a;
  double distance = std::fabs(chosen.value - other.value);
  return {chosen.value, std::max(chosen.bound, distance + other.bound)};
}
