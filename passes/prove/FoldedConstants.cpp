//===- FoldedConstants.cpp - Constants that were computed -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/FoldedConstants.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <map>
#include <numeric>

using namespace zero;
using namespace zero::prove;
using llvm::APFloat;

/// The part of |value|, which is positive, that is odd.
static int64_t getOddPart(int64_t value) {
  while (value % 2 == 0)
    value /= 2;
  return value;
}

namespace {

/// A number that is exact as long as no operation rounded.
class Exact {
public:
  explicit Exact(double value) : value(value) {
    convert(APFloat::IEEEquad());
    // The sign of -0 may be copied.
    isExact = std::isfinite(value) && !(value == 0 && std::signbit(value));
  }
  void add(const Exact &other) {
    note(value.add(other.value, APFloat::rmNearestTiesToEven), other);
  }
  void multiply(const Exact &other) {
    note(value.multiply(other.value, APFloat::rmNearestTiesToEven), other);
  }
  void divide(const Exact &other) {
    note(value.divide(other.value, APFloat::rmNearestTiesToEven), other);
  }
  /// The number of f64 that it is; nothing if it is none.
  std::optional<double> asDouble() {
    convert(APFloat::IEEEdouble());
    return isExact ? std::optional(value.convertToDouble()) : std::nullopt;
  }

private:
  void note(APFloat::opStatus status, const Exact &other) {
    isExact = isExact && other.isExact && status == APFloat::opOK;
  }
  void convert(const llvm::fltSemantics &type) {
    bool losesInfo = false;
    value.convert(type, APFloat::rmNearestTiesToEven, &losesInfo);
    isExact = isExact && !losesInfo;
  }

  APFloat value;
  bool isExact = true;
};

/// The terms of a polynomial that differ in constants only.
struct Group {
  Monomial rest;
  std::vector<Term> constants;
};

} // namespace

/// The sum of |terms|, which are constants, times |odd|. That has no odd
/// denominator any more.
static std::optional<double> addUp(llvm::ArrayRef<Term> terms, int64_t odd) {
  Exact sum(0);
  for (const Term &term : terms) {
    auto [numerator, denominator] = term.coefficient;
    int64_t rest = getOddPart(denominator);
    Exact product = Exact(double(numerator));
    product.multiply(Exact(double(odd / rest)));
    product.divide(Exact(double(denominator / rest)));
    for (auto [base, exponent] : term.monomial)
      for (int64_t i = 0; i < exponent; ++i)
        product.multiply(Exact(base->value));
    sum.add(product);
  }
  return sum.asDouble();
}

/// |group| as one term; null if it is no number of f64.
static Expr fold(Algebra &algebra, const Group &group) {
  constexpr int64_t kLargest = 1 << 20; // more would be no small fraction
  int64_t odd = 1;
  for (const Term &term : group.constants) {
    odd = std::lcm(odd, getOddPart(term.coefficient.denominator));
    bool isSmall = std::abs(term.coefficient.numerator) <= kLargest * kLargest;
    if (odd > kLargest || !isSmall)
      return nullptr;
  }
  std::optional<double> value = addUp(group.constants, odd);
  return value ? algebra.multiply(algebra.product({1, odd}, group.rest),
                                  algebra.constant(*value))
               : nullptr;
}

/// |a| with one term for each group that can be folded.
static Expr foldGroups(Algebra &algebra, Expr a) {
  auto isConstant = [](auto factor) {
    return factor.first->kind == BaseKind::constant && factor.second > 0 &&
           factor.second < 4;
  };
  std::map<std::vector<std::pair<unsigned, int64_t>>, Group> groups;
  for (const Term &term : a->getTerms()) {
    Monomial rest, constants;
    for (auto factor : term.monomial)
      (isConstant(factor) ? constants : rest).push_back(factor);
    std::vector<std::pair<unsigned, int64_t>> key;
    for (auto [base, exponent] : rest)
      key.push_back({base->index, exponent});
    Group &group = groups[std::move(key)];
    group.rest = rest;
    group.constants.push_back({term.coefficient, constants});
  }
  llvm::SmallVector<Expr> addends;
  for (const auto &[key, group] : groups) {
    if (Expr folded = fold(algebra, group)) {
      addends.push_back(folded);
      continue;
    }
    for (const Term &term : group.constants)
      addends.push_back(
          algebra.multiply(algebra.product({1, 1}, group.rest),
                           algebra.product(term.coefficient, term.monomial)));
  }
  return algebra.sum(addends);
}

/// Whether |base| is a number made by arithmetic of its operands.
static bool isArithmetic(BaseRef base) {
  static constexpr llvm::StringLiteral names[] = {
      "sqrt", "inverse", "divf", "subf", "addf", "mulf", "sum"};
  return base->kind != BaseKind::operation ||
         llvm::is_contained(names, base->name);
}

Substitution prove::foldConstants(Algebra &algebra) {
  return Substitution(
      algebra,
      [&algebra](BaseRef base) {
        return isArithmetic(base) ? nullptr
                                  : algebra.product({1, 1}, {{base, 1}});
      },
      [&algebra](Expr a) { return foldGroups(algebra, a); });
}
