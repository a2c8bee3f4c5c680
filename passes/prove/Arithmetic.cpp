//===- Arithmetic.cpp - Sums, products and roots of polynomials -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>

using namespace zero;
using namespace zero::prove;

/// Products of more terms than this stay products: nothing a step needs comes
/// near, and an optimizer that squares sums again and again cannot hang us.
static constexpr size_t kLargestProduct = 256;

/// Products of terms in one call of multiply, with those of sums that it joins.
static constexpr size_t kMostProducts = 100000;

static bool isBefore(const Monomial &a, const Monomial &b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(), [](auto x, auto y) {
        return std::pair(x.first->index, x.second) <
               std::pair(y.first->index, y.second);
      });
}

/// Whether |monomial| may be infinite: it has a gradient, or divides by a
/// number that may be 0.
static bool mayBeInfinite(const Monomial &monomial) {
  return llvm::any_of(monomial, [](auto factor) {
    auto [base, exponent] = factor;
    bool isNan = base->kind == BaseKind::operation &&
                 (base->name == "divf" || base->name == "subf");
    return (exponent < 0 && !isNeverZero(base)) || (base->mayBeNan && !isNan);
  });
}

/// Whether |a| and |b| times |monomial| may be nan where their sum times it is
/// infinite: infinities of two signs, or 0 times infinity.
static bool losesNan(Rational a, Rational b, const Monomial &monomial) {
  bool haveOneSign = a.numerator != 0 && b.numerator != 0 &&
                     (a.numerator < 0) == (b.numerator < 0);
  // A sum of 0 stays 0 times the monomial.
  bool isZero = a == Rational{-b.numerator, b.denominator};
  return !haveOneSign && !isZero && mayBeInfinite(monomial);
}

Expr Algebra::minusItself(Expr a) {
  bool isInfinite = a->terms.size() == 1 &&
                    a->terms[0].coefficient.numerator != 0 &&
                    mayBeInfinite(a->terms[0].monomial);
  return isInfinite ? operation("subf", {a, a}) : multiply(integer(0), a);
}

Expr Algebra::add(Expr a, Expr b) {
  if (a->isZero())
    return b;
  if (b->isZero())
    return a;
  llvm::SmallVector<Monomial, 1> lost;
  std::vector<Term> sum;
  sum.reserve(a->terms.size() + b->terms.size());
  auto x = a->terms.begin(), y = b->terms.begin();
  while (x != a->terms.end() || y != b->terms.end()) {
    if (y == b->terms.end() ||
        (x != a->terms.end() && isBefore(x->monomial, y->monomial))) {
      sum.push_back(*x++);
    } else if (x == a->terms.end() || isBefore(y->monomial, x->monomial)) {
      sum.push_back(*y++);
    } else {
      auto coefficient = prove::add(x->coefficient, y->coefficient);
      if (!coefficient)
        return symmetric("addf", a, b);
      if (losesNan(x->coefficient, y->coefficient, x->monomial))
        lost.push_back(x->monomial);
      Term term{*coefficient, x->monomial};
      if (!term.vanishes())
        sum.push_back(std::move(term));
      ++x;
      ++y;
    }
  }
  return addNan(intern(std::move(sum)), lost);
}

Expr Algebra::addNan(Expr a, llvm::ArrayRef<Monomial> lost) {
  for (const Monomial &monomial : lost)
    a = add(a, minusItself(product({1, 1}, monomial)));
  return a;
}

/// The finite value of |a| in f64, if constants alone are in it.
static std::optional<double> asConstant(Expr a) {
  double value = 0;
  for (const Term &term : a->getTerms()) {
    double product = term.coefficient.asDouble();
    for (auto [base, exponent] : term.monomial) {
      if (base->kind != BaseKind::constant)
        return std::nullopt;
      product *= std::pow(base->value, exponent);
    }
    value += product;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

Expr Algebra::symmetric(llvm::StringRef name, Expr a, Expr b) {
  if (a == b &&
      llvm::is_contained(
          {"minimumf", "minnumf", "maximumf", "maxnumf", "andi", "ori"}, name))
    return a;
  if (name == "minimumf" || name == "maximumf") {
    std::optional<double> x = asConstant(a), y = asConstant(b);
    // Far enough apart for any rounding of the two values.
    constexpr double kApart = 1e-9;
    if (x && y && std::abs(*x - *y) > kApart * (std::abs(*x) + std::abs(*y)))
      return (*x < *y) == (name == "minimumf") ? a : b;
  }
  return a->getIndex() < b->getIndex() ? operation(name, {a, b})
                                       : operation(name, {b, a});
}

bool prove::isNeverZero(BaseRef base) {
  switch (base->kind) {
  case BaseKind::symbol:
    return base->own == 0;
  case BaseKind::input:
    return base->isPositiveInput();
  case BaseKind::constant:
    return std::isfinite(base->value) && base->value != 0;
  case BaseKind::rankSum: // of a power of each rank's count
    return base->own == 0 &&
           llvm::all_of(base->operands[0]->getTerms(), [](const Term &term) {
             return llvm::all_of(term.monomial, [](auto factor) {
               return factor.first->kind == BaseKind::symbol;
             });
           });
  default:
    return false;
  }
}

/// Whether |base| is that of a number over itself. See Algebra::overItself.
static bool isOverItself(BaseRef base) {
  return base->kind == BaseKind::operation && base->name == "divf";
}

Expr Algebra::overItself(Expr a) {
  if (a->terms.size() != 1 || a->terms[0].coefficient.numerator == 0)
    return operation("divf", {a, a});
  Expr result = integer(1);
  for (auto [base, exponent] : a->terms[0].monomial)
    if (isOverItself(base))
      result = multiply(result, product({1, 1}, {{base, 1}}));
    else if (!isNeverZero(base)) {
      Expr alone = product({1, 1}, {{base, 1}});
      result = multiply(result, operation("divf", {alone, alone}));
    }
  return result;
}

static bool isMagnitude(BaseRef base) {
  return base->kind == BaseKind::operation && base->name == "absf";
}

/// Of two monomials, each sorted; nothing where an exponent does not fit. A
/// number that was multiplied by and divided by leaves what it is over itself.
/// An even power of a magnitude is one of the number, also of nan.
std::optional<Monomial> Algebra::multiply(const Monomial &a,
                                          const Monomial &b) {
  Monomial product;
  llvm::SmallVector<BaseRef> cancelled;
  Monomial powers;
  auto x = a.begin(), y = b.begin();
  while (x != a.end() || y != b.end()) {
    if (y == b.end() || (x != a.end() && x->first->index < y->first->index)) {
      product.push_back(*x++);
    } else if (x == a.end() || y->first->index < x->first->index) {
      product.push_back(*y++);
    } else {
      int64_t exponent;
      if (llvm::AddOverflow(x->second, y->second, exponent))
        return std::nullopt;
      if (isOverItself(x->first))
        exponent = 1; // and 1 or nan to any power
      else if ((x->second < 0) != (y->second < 0) && !isNeverZero(x->first))
        cancelled.push_back(x->first);
      BaseRef inside = isMagnitude(x->first) && exponent % 2 == 0
                           ? x->first->operands[0]->asBase()
                           : nullptr;
      if (inside && exponent != 0)
        powers.push_back({inside, exponent});
      else if (exponent != 0)
        product.push_back({x->first, exponent});
      ++x;
      ++y;
    }
  }
  auto multiplyBy = [&](const Monomial &factor) {
    auto rest = multiply(product, factor);
    if (rest)
      product = std::move(*rest);
    return rest.has_value();
  };
  for (auto power : powers)
    if (!multiplyBy({power}))
      return std::nullopt;
  for (BaseRef base : cancelled)
    if (!multiplyBy(
            overItself(this->product({1, 1}, {{base, 1}}))->terms[0].monomial))
      return std::nullopt;
  return product;
}

Expr Algebra::negate(Expr a) { return multiply(integer(-1), a); }

Expr Algebra::multiply(Expr a, Expr b) {
  auto keep = [&] { return symmetric("mulf", a, b); };
  llvm::SaveAndRestore nested(multiplyDepth, multiplyDepth + 1);
  if (multiplyDepth == 1)
    numProducts = 0;
  numProducts += a->terms.size() * b->terms.size();
  if (numProducts > kMostProducts)
    return keep();
  // 0 has no terms, but makes those of the other one 0.
  if (a->isZero() && !b->isZero())
    return multiply(b, a);
  if (b->isZero()) {
    std::vector<Term> terms = a->terms;
    for (Term &term : terms)
      term.coefficient = {0, 1};
    return merge(std::move(terms));
  }
  auto divides = [](const Term &term) { return dividesByZero(term.monomial); };
  if (b->terms.size() > 1 && llvm::any_of(a->terms, divides))
    return multiplyFactor(a, b);
  if (a->terms.size() > 1 && llvm::any_of(b->terms, divides))
    return multiplyFactor(b, a);
  if (a->terms.size() > 1 && b->terms.size() > 1 &&
      a->terms.size() * b->terms.size() > kLargestProduct)
    return keep();
  std::vector<Term> terms;
  for (const Term &x : a->terms)
    for (const Term &y : b->terms) {
      auto coefficient = prove::multiply(x.coefficient, y.coefficient);
      auto monomial = multiply(x.monomial, y.monomial);
      if (!coefficient || !monomial)
        return keep();
      terms.push_back({*coefficient, std::move(*monomial)});
    }
  Expr product = merge(std::move(terms));
  if (!product)
    return keep();
  auto hasSum = [](const Term &term) {
    return llvm::any_of(term.monomial,
                        [](auto factor) { return isDividedSum(factor.first); });
  };
  return llvm::any_of(a->terms, hasSum) || llvm::any_of(b->terms, hasSum)
             ? joinSums(product)
             : product;
}

Expr Algebra::merge(std::vector<Term> terms) {
  llvm::sort(terms, [](const Term &x, const Term &y) {
    return isBefore(x.monomial, y.monomial);
  });
  std::vector<Term> merged;
  llvm::SmallVector<Monomial, 1> lost;
  for (Term &term : terms) {
    if (merged.empty() || merged.back().monomial != term.monomial) {
      merged.push_back(std::move(term));
      continue;
    }
    auto sum = prove::add(merged.back().coefficient, term.coefficient);
    if (!sum)
      return nullptr;
    if (losesNan(merged.back().coefficient, term.coefficient, term.monomial))
      lost.push_back(term.monomial);
    merged.back().coefficient = *sum;
  }
  llvm::erase_if(merged, [](const Term &term) { return term.vanishes(); });
  return addNan(intern(std::move(merged)), lost);
}

Expr Algebra::sum(llvm::ArrayRef<Expr> addends) {
  std::vector<Term> terms;
  for (Expr addend : addends)
    llvm::append_range(terms, addend->terms);
  if (Expr merged = merge(std::move(terms)))
    return merged;
  Expr sum = integer(0);
  for (Expr addend : addends)
    sum = add(sum, addend);
  return sum;
}

Expr Algebra::power(Expr a, int64_t exponent) {
  if (exponent < 0 && exponent != INT64_MIN)
    return divide(integer(1), power(a, -exponent));
  Expr result = integer(1);
  for (Expr square = a; exponent > 0; square = multiply(square, square)) {
    if (exponent % 2 == 1)
      result = multiply(result, square);
    exponent /= 2;
    if (exponent == 0)
      break;
  }
  return result;
}

Expr Algebra::divide(Expr a, Expr b) {
  if (b->terms.size() != 1 || b->terms[0].coefficient.numerator == 0)
    return multiply(a, operation("inverse", {b}));
  const Term &term = b->terms[0];
  for (auto [base, exponent] : term.monomial)
    if (isDividedSum(base)) {
      Monomial rest = term.monomial;
      llvm::erase_if(rest, [&, b = base](auto f) { return f.first == b; });
      return multiply(divide(a, product(term.coefficient, rest)),
                      power(operation("inverse", base->operands[0]), exponent));
    }
  Monomial inverse = term.monomial;
  for (auto &[base, exponent] : inverse)
    exponent = isOverItself(base) ? exponent : -exponent;
  auto coefficient =
      normalize(term.coefficient.denominator, term.coefficient.numerator);
  return multiply(a, intern({Term{*coefficient, std::move(inverse)}}));
}

static bool isPositive(BaseRef base) {
  // The count of one rank may be 0.
  return (base->kind == BaseKind::symbol && base->own == 0) ||
         (base->kind == BaseKind::constant && base->value > 0) ||
         base->isPositiveInput();
}

Expr Algebra::magnitude(Expr a) {
  if (a->isZero())
    return a;
  if (a->terms.size() != 1)
    return operation("absf", {a});
  Rational factor = a->terms[0].coefficient;
  factor.numerator = std::abs(factor.numerator);
  Expr result = rational(factor);
  for (auto [base, exponent] : a->terms[0].monomial) {
    // A root is not negative, or nan.
    bool hasNoSign =
        exponent % 2 == 0 || isPositive(base) || isMagnitude(base) ||
        isOverItself(base) ||
        (base->kind == BaseKind::operation && base->name == "sqrt");
    Expr alone = product({1, 1}, {{base, 1}});
    result =
        multiply(result, power(hasNoSign ? alone : operation("absf", {alone}),
                               exponent));
  }
  return result;
}

Expr Algebra::squareRoot(Expr a) {
  if (a->isZero())
    return a;
  // Takes out common factors with even powers that are not negative: the root
  // of 4 x^2 (y + z) is 2 x times the root of y + z.
  auto rootOf = [](int64_t number) -> std::optional<int64_t> {
    if (number <= 0)
      return std::nullopt;
    auto root = static_cast<int64_t>(std::llround(std::sqrt(double(number))));
    if (root * root != number)
      return std::nullopt;
    return root;
  };
  const Term &first = a->terms[0];
  Monomial common;
  for (auto [base, exponent] : first.monomial) {
    // Only bases that are known to be positive: sizes, counts, scales.
    if (!isPositive(base) || exponent % 2 != 0)
      continue;
    bool everywhere =
        llvm::all_of(a->terms, [&, b = base, e = exponent](const Term &term) {
          return llvm::is_contained(term.monomial,
                                    std::pair<BaseRef, int64_t>(b, e));
        });
    if (everywhere)
      common.push_back({base, exponent});
  }
  Rational factor{1, 1};
  Rational root{1, 1};
  bool sameCoefficient = llvm::all_of(a->terms, [&](const Term &term) {
    return term.coefficient == first.coefficient;
  });
  auto numerator = rootOf(first.coefficient.numerator);
  auto denominator = rootOf(first.coefficient.denominator);
  if (sameCoefficient && numerator && denominator) {
    factor = first.coefficient;
    root = {*numerator, *denominator};
  }
  Expr rest = divide(a, product(factor, common));
  Monomial halved = common;
  for (auto &[base, exponent] : halved)
    exponent /= 2;
  Expr outside = product(root, halved);
  if (rest->asRational() && *rest->asRational() == Rational{1, 1})
    return outside;
  return multiply(outside, operation("sqrt", {rest}));
}

Expr Algebra::product(Rational coefficient, const Monomial &monomial) {
  Term term{coefficient, monomial};
  return term.vanishes() ? intern({}) : intern({std::move(term)});
}

Expr Algebra::mapTerms(Expr a,
                       llvm::function_ref<Expr(const Term &)> function) {
  llvm::SmallVector<Expr> mapped;
  for (const Term &term : a->terms) {
    mapped.push_back(function(term));
    if (!mapped.back())
      return nullptr;
  }
  return sum(mapped);
}
