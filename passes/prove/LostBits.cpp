//===- LostBits.cpp - Digits that a sum loses -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/LostBits.h"

#include "passes/prove/Counts.h"
#include "passes/prove/Magnitudes.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace zero;
using namespace zero::prove;

/// Choices that are looked at in one sum, and choices in them.
static constexpr size_t kMostLostChoices = 8;
static constexpr int kMostNested = 2;
/// Monomials of decided choices that are compared with each other.
static constexpr size_t kMostDecided = 512;
/// Terms of a sum in which roots and inverses may cancel, and roots of roots.
static constexpr size_t kMostTerms = 6;
static constexpr int kMostRoots = 2;

/// The numbers of which |base| is one; none if it is no choice.
static llvm::SmallVector<Expr, 2> getAlternatives(Algebra &algebra,
                                                  BaseRef base) {
  llvm::ArrayRef<Expr> x = base->operands;
  if (base->kind != BaseKind::operation)
    return {};
  if (base->name == "select")
    return {x[1], x[2]};
  if (base->name == "minimumf" || base->name == "maximumf" ||
      base->name == "minnumf" || base->name == "maxnumf")
    return {x[0], x[1]};
  if (base->name == "absf")
    return {x[0], algebra.negate(x[0])};
  return {};
}

using Choices = llvm::SmallSetVector<BaseRef, 4>;

static void addChoices(Algebra &algebra, const Term &term, Choices &choices) {
  for (auto [base, exponent] : term.monomial)
    if (exponent == 1 && !getAlternatives(algebra, base).empty())
      choices.insert(base);
}

static Monomial without(const Monomial &monomial, BaseRef choice) {
  Monomial rest = monomial;
  llvm::erase_if(rest, [&](auto factor) { return factor.first == choice; });
  return rest;
}

/// |a| where |choice| is |alternative|.
static Expr decide(Algebra &algebra, Expr a, BaseRef choice, Expr alternative) {
  llvm::SmallVector<Expr> terms;
  for (const Term &term : a->getTerms()) {
    bool isDecided = llvm::is_contained(term.monomial,
                                        std::pair<BaseRef, int64_t>(choice, 1));
    Expr product =
        algebra.product(term.coefficient, without(term.monomial, choice));
    terms.push_back(isDecided
                        ? algebra.multiply(product, alternative)
                        : algebra.product(term.coefficient, term.monomial));
  }
  return algebra.sum(terms);
}

/// The monomials that |term| may be where its choices are decided.
static void addDecided(Algebra &algebra, const Monomial &monomial, int nested,
                       std::vector<Monomial> &decided) {
  if (nested == kMostNested || decided.size() > kMostDecided)
    return;
  Choices choices;
  addChoices(algebra, {{1, 1}, monomial}, choices);
  for (BaseRef choice : choices)
    for (Expr alternative : getAlternatives(algebra, choice))
      for (const Term &term : alternative->getTerms())
        if (auto product =
                algebra.multiply(without(monomial, choice), term.monomial)) {
          decided.push_back(*product);
          addDecided(algebra, *product, nested + 1, decided);
        }
}

/// Whether a term that is decided may cancel another one. Few sums have such.
static bool mayCancel(Algebra &algebra, llvm::ArrayRef<Expr> addends) {
  std::vector<Monomial> decided;
  for (Expr addend : addends)
    for (const Term &term : addend->getTerms())
      addDecided(algebra, term.monomial, 0, decided);
  if (decided.size() > kMostDecided)
    return true;
  for (size_t i = 0; i < decided.size(); ++i)
    if (llvm::is_contained(llvm::ArrayRef(decided).drop_front(i + 1),
                           decided[i]) ||
        llvm::any_of(addends, [&](Expr addend) {
          return llvm::any_of(addend->getTerms(), [&](const Term &term) {
            return term.monomial == decided[i];
          });
        }))
      return true;
  return false;
}

/// |term| without the factors of |other|.
static Term without(const Term &term, const Term &other) {
  Term rest = term;
  llvm::erase_if(rest.monomial, [&](auto factor) {
    return llvm::is_contained(other.monomial, factor);
  });
  return rest;
}

/// Whether an operation |name|, to an odd power, is a factor of |term|.
static bool has(const Term &term, llvm::StringRef name) {
  return llvm::any_of(term.monomial, [&](auto factor) {
    return factor.first->kind == BaseKind::operation &&
           factor.first->name == name && factor.second % 2 != 0;
  });
}

/// Whether |term| without the roots or inverses |name| has few terms.
static bool isShort(const Term &term, llvm::StringRef name) {
  double count = 1;
  for (auto [base, power] : term.monomial)
    if (base->kind == BaseKind::operation && base->name == name)
      count *= std::pow(base->operands[0]->getTerms().size(),
                        std::abs(double(power)));
  return count <= kMostTerms;
}

/// |term| to the power of |exponent|, without the root or the inverse |name|.
static Expr raise(Algebra &algebra, const Term &term, int exponent,
                  llvm::StringRef name) {
  Expr result = algebra.power(algebra.rational(term.coefficient), exponent);
  for (auto [base, power] : term.monomial) {
    Expr factor = algebra.product({1, 1}, {{base, power * exponent}});
    if (base->kind == BaseKind::operation && base->name == name)
      factor = algebra.power(base->operands[0], power);
    result = algebra.multiply(result, factor);
  }
  return result;
}

static double findLostBits(Algebra &algebra, llvm::ArrayRef<Expr> addends,
                           Expr sum, int roots);

/// The digits that two terms of |sum| lose which are no multiples of each
/// other, if their squares or their inverses are sums that do, as those of
/// sqrt(x + 1) - sqrt(x) are. |roots| is the number of roots and inverses
/// around |sum|.
static double findBitsLostInRoots(Algebra &algebra, Expr sum, int roots) {
  llvm::ArrayRef<Term> terms = sum->getTerms();
  double most = 0;
  if (terms.size() > kMostTerms || roots == kMostRoots)
    return most;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t j = i + 1; j < terms.size(); ++j)
      for (auto [name, exponent] :
           {std::pair<llvm::StringRef, int>("sqrt", 2), {"inverse", -1}}) {
        Term a = without(terms[i], terms[j]), b = without(terms[j], terms[i]);
        bool areBoth = has(a, name) && has(b, name);
        bool isDifference =
            (a.coefficient.numerator > 0) != (b.coefficient.numerator > 0);
        // Numbers that are no roots have any sign.
        if (!(has(a, name) || has(b, name)) || (areBoth && !isDifference) ||
            !isShort(a, name) || !isShort(b, name) ||
            a.coefficient.numerator == 0 || b.coefficient.numerator == 0)
          continue;
        Expr x = raise(algebra, a, exponent, name);
        Expr y = raise(algebra, b, exponent, name);
        // An inverse has the sign of its number, and a square has none.
        if (exponent > 0 || !isDifference)
          y = algebra.negate(y);
        most = std::max(
            most, findLostBits(algebra, {x, y}, algebra.add(x, y), roots + 1));
      }
  return most;
}

static double findOwnLostBits(Algebra &algebra, llvm::ArrayRef<Expr> addends,
                              Expr sum, int roots) {
  if (llvm::all_of(addends, isConstant)) {
    double left = std::abs(evaluateConstant(algebra, sum));
    double addend = std::abs(evaluateConstant(algebra, addends[1]));
    // 0 is exact. Both addends of a small sum are about as large.
    bool isSmall = left != 0 && addend > left;
    return isSmall ? std::log2(addend / left) : 0;
  }
  // Whole numbers are exact.
  if (llvm::all_of(addends, isExactCount))
    return 0;
  return std::max(getLostBits(algebra, addends, sum),
                  findBitsLostInRoots(algebra, sum, roots));
}

static double findWhereDecided(Algebra &algebra, llvm::ArrayRef<Expr> addends,
                               Expr sum, int roots, int nested) {
  Choices choices;
  for (Expr addend : addends)
    for (const Term &term : addend->getTerms())
      addChoices(algebra, term, choices);
  double most = 0;
  if (nested == kMostNested || choices.size() > kMostLostChoices)
    return most;
  for (BaseRef choice : choices)
    for (Expr alternative : getAlternatives(algebra, choice)) {
      auto decideIt = [&](Expr a) {
        return decide(algebra, a, choice, alternative);
      };
      llvm::SmallVector<Expr> now = llvm::map_to_vector(addends, decideIt);
      Expr sumNow = decideIt(sum);
      most =
          std::max({most, findOwnLostBits(algebra, now, sumNow, roots),
                    findWhereDecided(algebra, now, sumNow, roots, nested + 1)});
    }
  return most;
}

static double findLostBits(Algebra &algebra, llvm::ArrayRef<Expr> addends,
                           Expr sum, int roots) {
  double most = findOwnLostBits(algebra, addends, sum, roots);
  if (mayCancel(algebra, addends))
    most = std::max(most, findWhereDecided(algebra, addends, sum, roots, 0));
  return most;
}

double prove::findLostBits(Algebra &algebra, llvm::ArrayRef<Expr> addends,
                           Expr sum) {
  // Handlers compute the same numbers in each state, and after each pass.
  auto [known, isNew] =
      algebra.getKnownLostBits().try_emplace({addends[0], addends[1], sum});
  if (isNew)
    known->second = ::findLostBits(algebra, addends, sum, /*roots=*/0);
  return known->second;
}
