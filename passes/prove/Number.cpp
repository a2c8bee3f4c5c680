//===- Number.cpp - A number of a step and how it was computed ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Number.h"

#include "dialect/zero/StorageTypes.h"
#include "dialect/zero/ZeroDialect.h"
#include "passes/prove/Magnitudes.h"
#include "passes/prove/RelativeError.h"

#include "llvm/ADT/Hashing.h"

#include <climits>
#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Whether |a| is a sum of elements times scalars.
static bool isLinear(Expr a) {
  return llvm::all_of(a->getTerms(), [](const Term &term) {
    int64_t degree = 0;
    for (auto [base, exponent] : term.monomial)
      if (base->isElement)
        degree += exponent == 1 && base->kind != BaseKind::operation ? 1 : 2;
    return degree <= 1;
  });
}

/// Whether every type that a step may use holds |a|, so that no conversion
/// rounds it.
static bool isInEveryType(Rational a) {
  constexpr int64_t kMost = int64_t(1) << kLeastPrecision;
  // 1 / 2^14 is the smallest normal number with exponents of 5 bits.
  constexpr int64_t kMostDivisor = int64_t(1)
                                   << ((1 << (kLeastExponentBits - 1)) - 2);
  return std::abs(a.numerator) <= kMost && a.denominator <= kMostDivisor &&
         llvm::isPowerOf2_64(a.denominator);
}

static std::optional<Source> getSource(BaseRef base) {
  switch (base->kind) {
  case BaseKind::symbol:
    return Source{base->name == kTokens      ? SourceKind::tokens
                  : base->name == kLossScale ? SourceKind::lossScale
                                             : SourceKind::count};
  case BaseKind::input:
    return Source{SourceKind::input, base->name};
  case BaseKind::tokens:
    return Source{SourceKind::tokens};
  case BaseKind::old:
    return Source{SourceKind::counter, base->name};
  case BaseKind::constant:
    return Source{SourceKind::constant};
  case BaseKind::missing:
  case BaseKind::delivered:
    return Source{SourceKind::count};
  case BaseKind::gradient:
    return Source{SourceKind::gradient};
  case BaseKind::state:
    return Source{SourceKind::state, base->name};
  case BaseKind::sumOver:
    return Source{SourceKind::sum};
  case BaseKind::undefined:
  case BaseKind::rankSum:
  case BaseKind::once:
  case BaseKind::operation:
    return std::nullopt; // of its operands, or of none
  }
  llvm_unreachable("unknown kind of base");
}

Number prove::makeSource(Algebra &algebra, Expr expr) {
  Number number{expr};
  auto add = [&](Source source) {
    number.roundings =
        number.roundings.limitedBy(algebra.getRoundings().get(source));
  };
  for (const Term &term : expr->getTerms())
    if (!isInEveryType(term.coefficient))
      add({SourceKind::constant});
  visitBases(
      expr,
      [&](BaseRef base) {
        if (auto source = getSource(base))
          add(*source);
      },
      [](BaseRef base) { return base->kind != BaseKind::sumOver; });
  number.skipped = number.roundings;
  return number;
}

void Number::arrive(Precision type) {
  arrived = expr;
  arrivedAs = type;
}

void Number::narrow(Precision to) {
  if (isAsItArrived() && to.holds(arrivedAs))
    return;
  arrived = nullptr;
  bool isAlone = expr && expr->isSumOfBases() && roundings.hasOneSource();
  if (expr) {
    roundings = roundings.narrowed(expr, to, isAlone);
    skipped = skipped.narrowed(expr, to, isAlone);
  }
  if (expr && !isLinear(expr))
    nonlinear = nonlinear.limitedBy(to);
}

void Number::narrowAs(const Number &other) {
  roundings = roundings.limitedBy(other.roundings);
  skipped = skipped.limitedBy(other.skipped);
  if (ran && other.ran && ran != other.ran) {
    skipped = roundings; // kernels that may not be skipped together
    ran = nullptr;
  } else if (!ran) {
    ran = other.ran;
  }
  nonlinear = nonlinear.limitedBy(other.nonlinear);
  reduceDtype = reduceDtype.limitedBy(other.reduceDtype);
  rounding = rounding ? rounding : other.rounding;
  holdsSum |= other.holdsSum;
  error = std::max(error, other.error);
  losses = std::max(losses, other.losses);
  roundingsCompared = std::max(roundingsCompared, other.roundingsCompared);
  computedAgain = computedAgain ? computedAgain : other.computedAgain;
  beforeConversion.reset();
  // The other one may have been rounded.
  if (!isAsItArrived() || !other.isAsItArrived() ||
      !(arrivedAs == other.arrivedAs))
    arrived = nullptr;
}

void Number::lose(double bits) {
  roundings = roundings.losing(static_cast<int>(bits));
  skipped = skipped.losing(static_cast<int>(bits));
}

void Number::add(Algebra &algebra, const Number &other) {
  Expr sum = algebra.add(expr, other.expr);
  double lostBits = prove::getLostBits(algebra, {expr, other.expr}, sum);
  expr = sum;
  narrowAs(other);
  loseDigits(*this, lostBits);
  way = addWays(way, other.way);
  lose(lostBits);
}

void Number::convert(Precision to) {
  if (!beforeConversion) {
    beforeConversion = roundings;
    errorBeforeConversion = error;
  }
  narrow(to);
}

void Number::travel() {
  if (beforeConversion && reduceDtype == Precision() && !holdsSum) {
    reduceDtype = roundings.getNarrowest(SourceKind::gradient);
    roundings = *beforeConversion;
    error = errorBeforeConversion;
  }
  beforeConversion.reset();
}

uint64_t prove::combineWays(uint64_t way, uint64_t part) {
  if (way == kSeveralWays || part == kSeveralWays)
    return kSeveralWays;
  return llvm::hash_combine(way, part);
}

void Number::joinPath(const Number &other) {
  // More than there are states of a protocol on one way.
  constexpr unsigned kMostGrowths = 64;
  bool grows = other.error > error || other.losses > losses;
  growths = std::max(growths + grows, other.growths);
  error = growths > kMostGrowths ? HUGE_VAL : std::max(error, other.error);
  losses = std::max(losses, other.losses);
  roundingsCompared = std::max(roundingsCompared, other.roundingsCompared);
  if (growths > kMostGrowths)
    losses = UINT_MAX;
  if (computed != other.computed)
    computed.reset();
  skippedWay = joinWays(getWayIfSkipped(), other.getWayIfSkipped());
  way = joinWays(way, other.way);
}

uint64_t Number::getWayFrom() const {
  return combineWays(way, expr->getIndex());
}

uint64_t Number::getWayOfSum(AxisSet set) const {
  return way == 0 ? 0 : combineWays(way, set);
}

uint64_t Number::getWayTo(Type type) const {
  return combineWays(way, llvm::hash_value(type.getAsOpaquePointer()));
}

bool Number::isMoved(uint64_t way, Type type) {
  return way == 0 || way == Number().getWayTo(type);
}

Number prove::clipCoefficient(Algebra &algebra, Number norm, const Number &max,
                              double epsilon) {
  Number least = makeSource(algebra, algebra.constant(epsilon));
  Expr ratio = algebra.divide(max.expr, algebra.add(norm.expr, least.expr));
  Number coefficient = norm;
  coefficient.narrowAs(least);
  coefficient.narrowAs(max);
  coefficient.error = norm.error + max.error + kErrorOfScale;
  coefficient.expr = ratio;
  coefficient.narrow(Precision::f64());
  coefficient.expr = algebra.symmetric("minimumf", ratio, algebra.integer(1));
  coefficient.narrow(Precision::f64());
  return coefficient;
}
