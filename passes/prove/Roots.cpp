//===- Roots.cpp - Roots of numbers that may not be finite ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The root of x^2 y is x times that of y if neither is negative. This is true
// of 0, infinity and nan, too: both are nan if x or y is, or if one of them is
// 0 and the other one infinite. If y is a sum, x must not be infinite, since
// infinity times (0 + 1) is infinite and infinity times 0 is nan.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Roots.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <memory>

using namespace zero;
using namespace zero::prove;

/// Whether |base| is the number of tokens of all ranks: see takeOutOfRoots().
static bool isTotalOfTokens(BaseRef base) {
  return base->kind == BaseKind::tokens && base->own == 0;
}

namespace {
/// What is known of numbers without facts of an applied step.
class Signs {
public:
  /// Whether |a| is not less than 0, or nan.
  bool isNotNegative(Expr a);
  bool isNotNegative(const Term &term);
  bool isNotNegative(BaseRef base);

private:
  bool compute(BaseRef base);

  llvm::DenseMap<BaseRef, bool> known;
};
} // namespace

bool Signs::isNotNegative(Expr a) {
  return llvm::all_of(a->getTerms(),
                      [&](const Term &term) { return isNotNegative(term); });
}

bool Signs::isNotNegative(const Term &term) {
  return term.coefficient.numerator >= 0 &&
         llvm::all_of(term.monomial, [&](auto factor) {
           return factor.second % 2 == 0 || isNotNegative(factor.first);
         });
}

bool Signs::isNotNegative(BaseRef base) {
  if (auto it = known.find(base); it != known.end())
    return it->second;
  bool result = compute(base);
  known[base] = result;
  return result;
}

bool Signs::compute(BaseRef base) {
  auto areAll = [&](llvm::ArrayRef<Expr> operands) {
    return llvm::all_of(operands, [&](Expr a) { return isNotNegative(a); });
  };
  switch (base->kind) {
  case BaseKind::symbol:
  case BaseKind::delivered:
  case BaseKind::once:
    return true;
  case BaseKind::tokens:
    return isTotalOfTokens(base);
  case BaseKind::constant:
    return base->value >= 0 && !std::signbit(base->value);
  case BaseKind::sumOver:
  case BaseKind::rankSum:
    return areAll(base->operands);
  case BaseKind::input:
    return base->isPositiveInput();
  case BaseKind::old:
  case BaseKind::gradient:
  case BaseKind::missing: // below 0 if ranks pass other inputs
  case BaseKind::state:
  case BaseKind::undefined:
    return false;
  case BaseKind::operation:
    break;
  }
  llvm::StringRef name = base->name;
  // A number over itself is 1 or nan, minus itself 0 or nan.
  if (llvm::is_contained({"sqrt", "absf", "divf", "subf"}, name))
    return true;
  // Over a sum of 0 it is infinity: such a sum has no sign.
  if (llvm::is_contained(
          {"inverse", "sum", "addf", "mulf", "minimumf", "maximumf"}, name))
    return areAll(base->operands);
  return false;
}

/// Whether |base| is not infinite.
static bool isBounded(Signs &signs, BaseRef base) {
  switch (base->kind) {
  case BaseKind::symbol:
  case BaseKind::missing:
  case BaseKind::delivered:
  case BaseKind::once:
    return true;
  case BaseKind::constant:
    return std::isfinite(base->value);
  case BaseKind::input:
    return base->isPositiveInput();
  case BaseKind::operation:
    // A clip coefficient is from 0 to 1.
    return base->name == "minimumf" && signs.isNotNegative(base) &&
           llvm::any_of(base->operands,
                        [](Expr a) { return a->asRational().has_value(); });
  default:
    return false;
  }
}

/// The root of |sum|, with factors taken out; null if there are none.
static Expr takeOut(Algebra &algebra, Signs &signs, Expr sum) {
  Monomial common, roots;
  llvm::ArrayRef<Term> terms = sum->getTerms();
  if (!sum->isZero() && signs.isNotNegative(sum))
    for (auto factor : terms[0].monomial) {
      auto [base, exponent] = factor;
      bool isEverywhere = llvm::all_of(terms, [&](const Term &term) {
        return llvm::is_contained(term.monomial, factor);
      });
      bool isFinite = exponent > 0 ? isBounded(signs, base)
                                   : isNeverZero(base) || isTotalOfTokens(base);
      if (exponent % 2 != 0 || !isEverywhere || !signs.isNotNegative(base) ||
          (terms.size() > 1 && !isFinite))
        continue;
      common.push_back(factor);
      roots.push_back({base, exponent / 2});
    }
  if (common.empty())
    return nullptr;
  Expr inside = algebra.mapTerms(sum, [&](const Term &term) {
    Monomial left;
    for (auto factor : term.monomial)
      if (!llvm::is_contained(common, factor))
        left.push_back(factor);
    return algebra.product(term.coefficient, left);
  });
  return algebra.multiply(algebra.product({1, 1}, roots),
                          algebra.squareRoot(inside));
}

Substitution prove::takeOutOfRoots(Algebra &algebra) {
  auto signs = std::make_shared<Signs>();
  return Substitution(algebra, [&algebra, signs](BaseRef base) -> Expr {
    if (base->kind != BaseKind::operation || base->name != "sqrt")
      return nullptr;
    return takeOut(algebra, *signs, base->operands[0]);
  });
}
