//===- Magnitudes.cpp - How far numbers are from their sources ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Magnitudes.h"

#include "dialect/zero/StorageTypes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <map>

using llvm::StringRef;
using namespace zero;
using namespace zero::prove;

namespace {
struct RangeOfType {
  unsigned exponentBits;
  int margin;        // powers of 2, of numbers as large as elements
  int otherMargin;   // of others, which are far from the limits of the type
  int leastExponent; // of a number that is not 0
};
} // namespace

static constexpr std::array<RangeOfType, kNumRanges> kRanges = {
    RangeOfType{5, 4, 4, -24}, RangeOfType{8, 24, 64, -149},
    RangeOfType{11, 100, 100, -1074}};

Magnitude Magnitude::joinedWith(const Magnitude &other) const {
  return {std::min(least, other.least), std::max(most, other.most),
          std::max(degree, other.degree)};
}

/// Whether |term| is as large as elements or a sum over them. Other numbers are
/// learning rates, counters and the like, far from the limits of f32.
static bool hasSizeOfElements(const Term &term) {
  return llvm::any_of(term.monomial, [](auto factor) {
    return factor.first->isElement || factor.first->hasGradient;
  });
}

/// Adds the magnitude of |term| to |magnitude|, unless it is a constant.
static void addTerm(const Term &term, bool isOfElements, Magnitude &magnitude) {
  constexpr double kFarthest = 1 << 20;
  constexpr int64_t kLargestDegree = 1 << 20;
  if (term.coefficient.numerator == 0)
    return;
  double exponent = std::log2(std::abs(term.coefficient.asDouble()));
  int64_t degree = 0;
  for (auto [base, power] : term.monomial) {
    exponent += double(power) * base->exponent;
    if (base->kind != BaseKind::constant)
      degree = std::max(degree, std::abs(power));
  }
  if (degree == 0)
    return;
  // A small power of a learning rate or a counter is no large number.
  constexpr int64_t kSmallPower = 4;
  if (!isOfElements && degree <= kSmallPower)
    degree = 1;
  if (std::isnan(exponent)) // of constants that are not finite
    return;
  int nearest = static_cast<int>(
      std::lround(std::clamp(exponent, -kFarthest, kFarthest)));
  magnitude = magnitude.joinedWith(
      {nearest, nearest, static_cast<int>(std::min(degree, kLargestDegree))});
}

Magnitudes::Magnitudes(Expr a, Precision type, bool isOfElements) {
  if (type.isExact())
    return;
  Magnitude *magnitude = ranges.end() - 1;
  for (unsigned i = 0; i < kNumRanges; ++i)
    if (type.exponent <= kRanges[i].exponentBits) {
      magnitude = &ranges[i];
      break;
    }
  for (const Term &term : a->getTerms())
    if (hasSizeOfElements(term) == isOfElements)
      addTerm(term, isOfElements, *magnitude);
}

Magnitudes Magnitudes::joinedWith(const Magnitudes &other) const {
  Magnitudes joined;
  for (unsigned i = 0; i < kNumRanges; ++i)
    joined.ranges[i] = ranges[i].joinedWith(other.ranges[i]);
  joined.lostBits = std::max(lostBits, other.lostBits);
  return joined;
}

Magnitudes Magnitudes::losing(int bits) const {
  Magnitudes result = *this;
  result.lostBits = std::min(lostBits + bits, kAllBits);
  return result;
}

Magnitudes Magnitudes::withoutLoss() const {
  Magnitudes result = *this;
  result.lostBits = 0;
  return result;
}

namespace {
/// The terms of a number whose bases are the same, but for constants.
using Multiples =
    llvm::MapVector<Monomial, double, std::map<Monomial, unsigned>>;
} // namespace

/// |base|, or for the inverse of a multiple of a sum that of the sum, and with
/// it the factor between both.
static std::pair<BaseRef, double> getInverse(Algebra &algebra, BaseRef base) {
  if (base->kind != BaseKind::operation || base->name != "inverse" ||
      base->operands[0]->isZero())
    return {base, 1};
  Rational first = base->operands[0]->getTerms()[0].coefficient;
  auto factor = normalize(first.denominator, first.numerator);
  if (first.numerator == 0 || !factor)
    return {base, 1};
  Expr part = algebra.multiply(algebra.rational(*factor), base->operands[0]);
  return {algebra.operation("inverse", {part})->asBase(), factor->asDouble()};
}

static Multiples getMultiples(Algebra &algebra, Expr a) {
  Multiples multiples;
  for (const Term &term : a->getTerms()) {
    double multiple = term.coefficient.asDouble();
    Monomial rest;
    for (auto [base, power] : term.monomial)
      if (base->kind == BaseKind::constant)
        multiple *= std::pow(base->value, double(power));
      else {
        auto [inverse, factor] = getInverse(algebra, base);
        multiple *= std::pow(factor, double(power));
        rest.push_back({inverse, power});
      }
    llvm::sort(rest, [](auto x, auto y) {
      return std::pair(x.first->index, x.second) <
             std::pair(y.first->index, y.second);
    });
    multiples[rest] += multiple;
  }
  return multiples;
}

/// The same for the terms of one |addend|.
static double findBitsLostIn(const Multiples &addend, const Multiples &sum) {
  double most = 0;
  for (auto &[bases, multiple] : addend) {
    auto it = sum.find(bases);
    if (it == sum.end())
      return kAllBits;
    double left = std::abs(it->second), whole = std::abs(multiple);
    // What is 0 or nan is in no sum of other numbers.
    if (left == 0 && whole != 0)
      return kAllBits;
    if (whole > left)
      most = std::max(most, std::log2(whole / left));
  }
  return most;
}

double prove::getLostBits(Algebra &algebra, llvm::ArrayRef<Expr> addends,
                          Expr sum) {
  double most = 0;
  Multiples multiples = getMultiples(algebra, sum);
  for (Expr addend : addends)
    most = std::max(most,
                    findBitsLostIn(getMultiples(algebra, addend), multiples));
  return most;
}

std::pair<std::array<std::tuple<int, int, int>, kNumRanges>, int>
Magnitudes::getKey() const {
  std::array<std::tuple<int, int, int>, kNumRanges> key;
  for (unsigned i = 0; i < kNumRanges; ++i)
    key[i] = ranges[i].getKey();
  return {key, lostBits};
}

// Of a number that loses no digit if 2^|expected| is added and taken away
// again, and does if it is 2^|bits|.
std::string prove::showLost(int bits, int expected) {
  constexpr int kFraction = 52; // of f64
  constexpr int kEnough = 60;   // bits, that nothing is left of a number
  double large = std::ldexp(1, std::min(bits, expected + kEnough));
  double number = std::ldexp(1, expected - kFraction);
  if (expected < kFraction)
    number += 1;
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("counterexample: %.17g + %.6g - %.6g is %.17g", number,
                      large, large, (number + large) - large);
  return text;
}

/// 2 to the power of |exponent|, and what becomes of it.
static std::string showLimit(int exponent, StringRef becomes, StringRef range) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "counterexample: "
     << llvm::format("%.6g", std::ldexp(1, std::clamp(exponent, -1074, 1023)))
     << " " << becomes << " in " << range;
  return text;
}

std::optional<Beyond> Magnitudes::findBeyond(const Magnitudes &expected,
                                             bool isOfElements) const {
  if (lostBits > expected.lostBits)
    return Beyond{"to which a term is added that is taken away again, so "
                  "digits are lost",
                  showLost(lostBits, expected.lostBits)};
  Magnitude known;
  for (unsigned i = 0; !isOfElements && i < kNumRanges; ++i)
    known = known.joinedWith(expected.ranges[i]);
  for (unsigned i = 0; i < kNumRanges; ++i) {
    known = known.joinedWith(expected.ranges[i]);
    const Magnitude &now = ranges[i];
    auto [bits, ofElements, ofOthers, leastExponent] = kRanges[i];
    int margin = isOfElements ? ofElements : ofOthers;
    StringRef range = getStorageTypeOfRange(bits);
    int infinite = 1 << (bits - 1); // 2^infinite is inf
    if (now.degree > known.degree) {
      std::string power = "to the power of " + std::to_string(now.degree);
      return Beyond{("in " + range + " " + power + ", expected at most " +
                     llvm::Twine(known.degree))
                        .str(),
                    showLimit((infinite + now.degree - 1) / now.degree,
                              power + " is inf", range)};
    }
    if (now.most > known.most + margin)
      return Beyond{("in " + range + " times 2^" + llvm::Twine(now.most) +
                     ", expected at most 2^" + llvm::Twine(known.most + margin))
                        .str(),
                    showLimit(infinite - now.most, "becomes inf", range)};
    if (now.least < known.least - margin)
      return Beyond{
          ("in " + range + " times 2^" + llvm::Twine(now.least) +
           ", expected at least 2^" + llvm::Twine(known.least - margin))
              .str(),
          showLimit(leastExponent - 1 - now.least, "becomes 0", range)};
  }
  return std::nullopt;
}

static bool contains(Expr a, bool entersRoots) {
  bool found = false;
  visitBases(
      a, [&](BaseRef base) { found |= base->kind == BaseKind::sumOver; },
      [&](BaseRef base) {
        return base->kind == BaseKind::operation &&
               (entersRoots || base->name != "sqrt") &&
               !llvm::StringRef(base->name).starts_with("cmpf ");
      });
  return found;
}

bool prove::hasSizeOfSum(Expr a) {
  if (contains(a, /*entersRoots=*/false))
    return true;
  // A root to the power of two is no root.
  return llvm::any_of(a->getTerms(), [](const Term &term) {
    return llvm::any_of(term.monomial, [](auto factor) {
      auto [base, exponent] = factor;
      return std::abs(exponent) > 1 && base->kind == BaseKind::operation &&
             base->name == "sqrt" &&
             contains(base->operands[0], /*entersRoots=*/true);
    });
  });
}
