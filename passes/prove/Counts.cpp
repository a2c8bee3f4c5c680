//===- Counts.cpp - Numbers made of counts --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Counts.h"

#include "passes/prove/Bounds.h"

#include <cmath>

using namespace zero;
using namespace zero::prove;

/// The count of each rank in the sum |base|, and its power.
static std::optional<std::pair<BaseRef, int64_t>> getSummed(BaseRef base) {
  if (base->kind != BaseKind::rankSum || base->over != 0)
    return std::nullopt;
  llvm::ArrayRef<Term> terms = base->operands[0]->getTerms();
  if (terms.size() != 1 || terms[0].monomial.size() != 1 ||
      !(terms[0].coefficient == Rational{1, 1}))
    return std::nullopt;
  return terms[0].monomial[0];
}

static bool isOwnCount(BaseRef base) {
  return base->kind == BaseKind::missing || base->kind == BaseKind::delivered ||
         (base->kind == BaseKind::symbol && base->name == kAccumulation);
}

bool prove::isCount(BaseRef base) {
  if (isOwnCount(base))
    return true;
  auto summed = getSummed(base);
  return summed && isOwnCount(summed->first);
}

bool prove::isSumOfMissing(BaseRef base) {
  auto summed = getSummed(base);
  return summed && summed->first->kind == BaseKind::missing;
}

bool prove::isOfCounts(Expr a) {
  return llvm::all_of(a->getTerms(), [](const Term &term) {
    return llvm::all_of(term.monomial, [](auto factor) {
      return isCount(factor.first) && factor.second > 0;
    });
  });
}

bool prove::isExactCount(Expr a) {
  if (!isOfCounts(a))
    return false;
  double most = 0;
  for (const Term &term : a->getTerms()) {
    if (term.coefficient.denominator != 1)
      return false;
    double exponent = 0;
    for (auto [base, power] : term.monomial) {
      auto [count, each] = getSummed(base).value_or(std::pair(base, 1));
      bool isMissing = count->kind == BaseKind::missing;
      exponent += double(power) * double(each) *
                  (isMissing ? kMissingExponent : kBackwardsExponent);
    }
    most += std::abs(double(term.coefficient.numerator)) *
            std::exp2(std::min(exponent, 1000.0));
  }
  constexpr int kBitsOfF64 = 53;
  return most < std::ldexp(1, kBitsOfF64);
}

namespace {
/// Writes counts as polynomials of unknowns that are 0 or more, and of which
/// nothing else is known.
class Unknowns {
public:
  Unknowns(Algebra &algebra, Situation situation, int64_t ranks)
      : algebra(algebra), situation(situation), ranks(ranks) {}

  /// Null for a base that is not a count.
  Expr replace(BaseRef base);

private:
  /// A number that is |least| or more.
  Expr from(int64_t least, const std::string &name) {
    return algebra.add(algebra.integer(least), algebra.symbol(name));
  }

  Algebra &algebra;
  Situation situation;
  int64_t ranks;
};
} // namespace

static constexpr llvm::StringLiteral kPrefix = "unknown ";

Expr Unknowns::replace(BaseRef base) {
  auto summed = getSummed(base);
  auto [count, power] = summed.value_or(std::pair(base, 1));
  if (!isOwnCount(count))
    return nullptr;
  if (count->kind == BaseKind::missing) {
    // What a rank adds for activations and for inputs has any sign, and only
    // the sum over the ranks is 0.
    if (ranks > 1 && (!summed || power != 1))
      return nullptr;
    if (!situation.missing)
      return algebra.integer(0);
    Expr sum = from(1, (kPrefix + "missing").str());
    return situation.belowZero ? algebra.negate(sum) : sum;
  }
  if (count->kind == BaseKind::delivered)
    return from(0, (kPrefix + "delivered" + llvm::Twine(summed ? power : 0) +
                    count->name)
                       .str());
  Expr own = from(1, (kPrefix + "own").str());
  if (!summed)
    return own;
  if (!situation.unequal)
    return algebra.multiply(algebra.integer(ranks), algebra.power(own, power));
  Expr sum = from(ranks + 1, (kPrefix + "sum").str());
  if (power == 1)
    return sum;
  if (power != 2)
    return from(ranks, (kPrefix + "power" + llvm::Twine(power)).str());
  // The number of ranks times the sum of squares is the square of the sum, and
  // the squares of all differences in addition. These are 1 or more for each
  // rank but one, if one rank has another count than the rest.
  Expr differences = from(ranks - 1, (kPrefix + "differences").str());
  return algebra.divide(algebra.add(algebra.multiply(sum, sum), differences),
                        algebra.integer(ranks));
}

Range prove::getRangeOfCounts(Algebra &algebra, Expr a, Situation situation,
                              int64_t ranks) {
  Unknowns unknowns(algebra, situation, ranks);
  Expr shifted = algebra.substitute(
      a, [&](BaseRef base) { return unknowns.replace(base); });
  Range range{0, 0};
  for (const Term &term : shifted->getTerms()) {
    double coefficient = term.coefficient.asDouble();
    if (term.monomial.empty()) {
      range.least += coefficient;
      range.most += coefficient;
      continue;
    }
    // A sum that does not fit is an operation.
    bool isKnown = llvm::all_of(term.monomial, [](auto factor) {
      return factor.first->kind == BaseKind::symbol &&
             llvm::StringRef(factor.first->name).starts_with(kPrefix) &&
             factor.second > 0;
    });
    if (!isKnown)
      return Range::ofAll();
    (coefficient > 0 ? range.most : range.least) =
        coefficient > 0 ? kInfinity : -kInfinity;
  }
  return range;
}
