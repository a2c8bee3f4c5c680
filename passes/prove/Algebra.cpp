//===- Algebra.cpp - Numbers of a step as polynomials ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>
#include <unordered_set>

using namespace zero;
using namespace zero::prove;

/// Products of more terms than this stay products: nothing a step needs comes
/// near, and an optimizer that squares sums again and again cannot hang us.
static constexpr size_t kLargestProduct = 256;

//===----------------------------------------------------------------------===//
// Fractions
//===----------------------------------------------------------------------===//

static std::optional<Rational> normalize(int64_t numerator,
                                         int64_t denominator) {
  if (denominator == 0 || numerator == INT64_MIN || denominator == INT64_MIN)
    return std::nullopt;
  int64_t divisor = std::gcd(numerator, denominator);
  if (denominator < 0)
    divisor = -divisor;
  return Rational{numerator / divisor, denominator / divisor};
}

std::optional<Rational> prove::multiply(Rational a, Rational b) {
  int64_t numerator, denominator;
  if (llvm::MulOverflow(a.numerator, b.numerator, numerator) ||
      llvm::MulOverflow(a.denominator, b.denominator, denominator))
    return std::nullopt;
  return normalize(numerator, denominator);
}

std::optional<Rational> prove::add(Rational a, Rational b) {
  int64_t left, right, numerator, denominator;
  if (llvm::MulOverflow(a.numerator, b.denominator, left) ||
      llvm::MulOverflow(b.numerator, a.denominator, right) ||
      llvm::AddOverflow(left, right, numerator) ||
      llvm::MulOverflow(a.denominator, b.denominator, denominator))
    return std::nullopt;
  return normalize(numerator, denominator);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static llvm::hash_code hashOf(const Base &base) {
  return llvm::hash_combine(
      int(base.kind), base.name, int(base.epoch), base.summed,
      llvm::hash_value(llvm::bit_cast<uint64_t>(base.value)),
      llvm::hash_combine_range(base.operands.begin(), base.operands.end()));
}

static bool isSame(const Base &a, const Base &b) {
  return a.kind == b.kind && a.name == b.name && a.epoch == b.epoch &&
         a.summed == b.summed &&
         llvm::bit_cast<uint64_t>(a.value) ==
             llvm::bit_cast<uint64_t>(b.value) &&
         a.operands == b.operands;
}

namespace {
struct HashBase {
  size_t operator()(const Base *base) const { return hashOf(*base); }
  bool operator()(const Base *a, const Base *b) const { return isSame(*a, *b); }
};
} // namespace

struct Algebra::Tables {
  struct HashPolynomial {
    size_t operator()(Expr a) const { return a->hash; }
    bool operator()(Expr a, Expr b) const {
      if (a->terms.size() != b->terms.size())
        return false;
      return llvm::all_of(llvm::zip(a->terms, b->terms), [](auto pair) {
        auto &[x, y] = pair;
        return x.coefficient == y.coefficient && x.monomial == y.monomial;
      });
    }
  };
  std::vector<std::unique_ptr<Base>> bases;
  std::vector<std::unique_ptr<Polynomial>> polynomials;
  std::unordered_set<const Base *, HashBase, HashBase> knownBases;
  std::unordered_set<Expr, HashPolynomial, HashPolynomial> knownPolynomials;
};

Algebra::Algebra() : tables(std::make_unique<Tables>()) {}
Algebra::~Algebra() = default;

static bool isBefore(const Monomial &a, const Monomial &b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(), [](auto x, auto y) {
        return std::pair(x.first->index, x.second) <
               std::pair(y.first->index, y.second);
      });
}

/// Takes sorted terms without zeros and duplicates.
Expr Algebra::intern(std::vector<Term> terms) {
  auto made = std::make_unique<Polynomial>();
  made->terms = std::move(terms);
  llvm::hash_code hash = llvm::hash_value(made->terms.size());
  for (const Term &term : made->terms) {
    hash = llvm::hash_combine(hash, term.coefficient.numerator,
                              term.coefficient.denominator);
    for (auto [base, exponent] : term.monomial) {
      hash = llvm::hash_combine(hash, base->index, exponent);
      made->element |= base->isElement;
      made->undefined |= base->isUndefined;
      made->own |= base->isOwn;
    }
  }
  made->hash = hash;
  made->index = tables->polynomials.size();
  auto [it, isNew] = tables->knownPolynomials.insert(made.get());
  if (isNew)
    tables->polynomials.push_back(std::move(made));
  return *it;
}

Expr Algebra::base(Base given) {
  BaseRef found;
  auto it = tables->knownBases.find(&given);
  if (it != tables->knownBases.end()) {
    found = *it;
  } else {
    auto made = std::make_unique<Base>(std::move(given));
    bool sums = made->kind == BaseKind::sumOver;
    made->isElement =
        made->kind == BaseKind::gradient || made->kind == BaseKind::state;
    made->isUndefined = made->kind == BaseKind::undefined;
    made->isOwn = made->kind == BaseKind::missing ||
                  ((made->kind == BaseKind::gradient || sums) && !made->summed);
    for (Expr operand : made->operands) {
      made->isElement |= !sums && operand->isElement();
      made->isUndefined |= operand->isUndefined();
      made->isOwn |= made->kind != BaseKind::rankSum && operand->isOwn();
    }
    made->index = tables->bases.size();
    found = made.get();
    tables->knownBases.insert(found);
    tables->bases.push_back(std::move(made));
  }
  return intern({Term{{1, 1}, {{found, 1}}}});
}

Expr Algebra::rational(Rational value) {
  if (value.numerator == 0)
    return intern({});
  return intern({Term{value, {}}});
}

Expr Algebra::constant(double value) {
  // Halves of small integers are exact; so are their small products.
  int exponent;
  double mantissa = std::frexp(value, &exponent);
  double scaled = std::ldexp(mantissa, 20);
  if (std::isfinite(value) && scaled == std::floor(scaled) &&
      std::abs(exponent) <= 30) {
    int shift = exponent - 20;
    if (auto fraction =
            shift >= 0 ? normalize(int64_t(scaled) * (int64_t(1) << shift), 1)
                       : normalize(int64_t(scaled), int64_t(1) << -shift))
      return rational(*fraction);
  }
  return base({BaseKind::constant, "", Epoch::all, false, value});
}

std::optional<Rational> Polynomial::asRational() const {
  if (terms.empty())
    return Rational{};
  if (terms.size() == 1 && terms[0].monomial.empty())
    return terms[0].coefficient;
  return std::nullopt;
}

BaseRef Polynomial::asBase() const {
  if (terms.size() != 1 || !(terms[0].coefficient == Rational{1, 1}) ||
      terms[0].monomial.size() != 1 || terms[0].monomial[0].second != 1)
    return nullptr;
  return terms[0].monomial[0].first;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Expr Algebra::add(Expr a, Expr b) {
  if (a->isZero())
    return b;
  if (b->isZero())
    return a;
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
      if (coefficient->numerator != 0)
        sum.push_back({*coefficient, x->monomial});
      ++x;
      ++y;
    }
  }
  return intern(std::move(sum));
}

static Monomial multiply(const Monomial &a, const Monomial &b) {
  Monomial product;
  auto x = a.begin(), y = b.begin();
  while (x != a.end() || y != b.end()) {
    if (y == b.end() || (x != a.end() && x->first->index < y->first->index)) {
      product.push_back(*x++);
    } else if (x == a.end() || y->first->index < x->first->index) {
      product.push_back(*y++);
    } else {
      if (int64_t exponent = x->second + y->second)
        product.push_back({x->first, exponent});
      ++x;
      ++y;
    }
  }
  return product;
}

Expr Algebra::negate(Expr a) { return multiply(integer(-1), a); }

Expr Algebra::subtract(Expr a, Expr b) {
  if (a == b && !a->asRational())
    return operation("subf", {a, b});
  return add(a, negate(b));
}

Expr Algebra::multiply(Expr a, Expr b) {
  auto keep = [&] { return symmetric("mulf", a, b); };
  if (a->terms.size() > 1 && b->terms.size() > 1 &&
      a->terms.size() * b->terms.size() > kLargestProduct)
    return keep();
  std::vector<Term> terms;
  for (const Term &x : a->terms)
    for (const Term &y : b->terms) {
      auto coefficient = prove::multiply(x.coefficient, y.coefficient);
      if (!coefficient)
        return keep();
      terms.push_back({*coefficient, ::multiply(x.monomial, y.monomial)});
    }
  Expr product = merge(std::move(terms));
  return product ? product : keep();
}

Expr Algebra::merge(std::vector<Term> terms) {
  llvm::sort(terms, [](const Term &x, const Term &y) {
    return isBefore(x.monomial, y.monomial);
  });
  std::vector<Term> merged;
  for (Term &term : terms) {
    if (merged.empty() || merged.back().monomial != term.monomial) {
      merged.push_back(std::move(term));
      continue;
    }
    auto sum = prove::add(merged.back().coefficient, term.coefficient);
    if (!sum)
      return nullptr;
    merged.back().coefficient = *sum;
    if (sum->numerator == 0)
      merged.pop_back();
  }
  return intern(std::move(merged));
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
  if (exponent < 0)
    return divide(integer(1), power(a, -exponent));
  Expr result = integer(1);
  for (int64_t i = 0; i < exponent; ++i)
    result = multiply(result, a);
  return result;
}

Expr Algebra::divide(Expr a, Expr b) {
  if (b->terms.size() != 1)
    return multiply(a, operation("inverse", {b}));
  const Term &term = b->terms[0];
  Monomial inverse = term.monomial;
  for (auto &[base, exponent] : inverse)
    exponent = -exponent;
  auto coefficient =
      normalize(term.coefficient.denominator, term.coefficient.numerator);
  return multiply(a, intern({Term{*coefficient, std::move(inverse)}}));
}

Expr Algebra::squareRoot(Expr a) {
  if (a->isZero())
    return a;
  // Takes out what every term has an even power of: the root of 4 x^2 (y + z)
  // is 2 x times the root of y + z, for what is not negative.
  auto rootOf = [](int64_t number) -> std::optional<int64_t> {
    if (number < 0)
      return std::nullopt;
    auto root = static_cast<int64_t>(std::llround(std::sqrt(double(number))));
    if (root * root != number)
      return std::nullopt;
    return root;
  };
  const Term &first = a->terms[0];
  Monomial common;
  for (auto [base, exponent] : first.monomial) {
    // Signs of elements are not known, and undefined is undefined.
    if (base->isElement || exponent % 2 != 0)
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
  if (coefficient.numerator == 0)
    return intern({});
  return intern({Term{coefficient, monomial}});
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

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

Expr Substitution::replace(BaseRef base) {
  if (auto it = replacements.find(base); it != replacements.end())
    return it->second;
  Expr replacement = function(base);
  if (replacement) {
    // Not itself again: what it gives for |base| is not known yet.
    replacement = apply(replacement);
  } else {
    Base copy = *base;
    for (Expr &operand : copy.operands)
      operand = apply(operand);
    if (copy.operands != base->operands)
      replacement = algebra.base(std::move(copy));
  }
  return replacements[base] = replacement;
}

Expr Substitution::apply(Expr a) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  bool same = true;
  llvm::SmallVector<Expr> addends;
  for (const Term &term : a->getTerms()) {
    Expr product = algebra.rational(term.coefficient);
    for (auto [base, exponent] : term.monomial) {
      Expr replacement = replace(base);
      same &= !replacement;
      product = algebra.multiply(
          product, replacement ? algebra.power(replacement, exponent)
                               : algebra.product({1, 1}, {{base, exponent}}));
    }
    addends.push_back(product);
  }
  return known[a] = same ? a : algebra.sum(addends);
}

Expr Algebra::substitute(Expr a, llvm::function_ref<Expr(BaseRef)> function) {
  return Substitution(*this, function).apply(a);
}

static double evaluateOperation(const Base &base, llvm::ArrayRef<double> x) {
  llvm::StringRef name = base.name;
  if (name == "inverse")
    return 1 / x[0];
  if (name == "sqrt")
    return std::sqrt(x[0]);
  if (name == "addf")
    return x[0] + x[1];
  if (name == "subf")
    return x[0] - x[1];
  if (name == "mulf")
    return x[0] * x[1];
  if (name == "absf")
    return std::abs(x[0]);
  if (name == "copysign")
    return std::copysign(x[0], x[1]);
  if (name == "select")
    return x[0] != 0 ? x[1] : x[2];
  if (name == "andi")
    return x[0] != 0 && x[1] != 0;
  if (name == "ori")
    return x[0] != 0 || x[1] != 0;
  bool unordered = std::isnan(x[0]) || (x.size() > 1 && std::isnan(x[1]));
  if (name == "minimumf")
    return unordered ? NAN : std::min(x[0], x[1]);
  if (name == "maximumf")
    return unordered ? NAN : std::max(x[0], x[1]);
  if (name == "minnumf")
    return std::fmin(x[0], x[1]);
  if (name == "maxnumf")
    return std::fmax(x[0], x[1]);
  if (name.consume_front("cmpf ")) {
    if (name == "ord")
      return !unordered;
    if (name == "uno")
      return unordered;
    bool result = name.ends_with("eq")   ? x[0] == x[1]
                  : name.ends_with("ne") ? x[0] != x[1]
                  : name.ends_with("gt") ? x[0] > x[1]
                  : name.ends_with("ge") ? x[0] >= x[1]
                  : name.ends_with("lt") ? x[0] < x[1]
                  : name.ends_with("le") ? x[0] <= x[1]
                                         : name == "true";
    return unordered ? name.starts_with("u") || name == "true" : result;
  }
  return NAN;
}

double
Algebra::evaluate(Expr a,
                  llvm::function_ref<std::optional<double>(BaseRef)> function,
                  llvm::DenseMap<const void *, double> &known) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  double sum = 0;
  for (const Term &term : a->terms) {
    double factor = term.coefficient.asDouble();
    for (auto [ref, exponent] : term.monomial) {
      double value;
      if (auto it = known.find(ref); it != known.end()) {
        value = it->second;
      } else {
        if (auto given = function(ref)) {
          value = *given;
        } else if (ref->kind == BaseKind::constant) {
          value = ref->value;
        } else if (ref->kind == BaseKind::operation) {
          llvm::SmallVector<double> operands;
          for (Expr operand : ref->operands)
            operands.push_back(evaluate(operand, function, known));
          value = evaluateOperation(*ref, operands);
        } else {
          value = NAN;
        }
        known[ref] = value;
      }
      factor *= std::pow(value, double(exponent));
    }
    sum += factor;
  }
  return known[a] = sum;
}

double
Algebra::evaluate(Expr a,
                  llvm::function_ref<std::optional<double>(BaseRef)> function) {
  llvm::DenseMap<const void *, double> known;
  return evaluate(a, function, known);
}

void prove::visitBases(Expr a, llvm::function_ref<void(BaseRef)> visit) {
  llvm::DenseSet<const void *> seen;
  llvm::SmallVector<Expr> stack{a};
  while (!stack.empty()) {
    Expr top = stack.pop_back_val();
    if (!seen.insert(top).second)
      continue;
    for (const Term &term : top->getTerms())
      for (auto [ref, exponent] : term.monomial)
        if (seen.insert(ref).second) {
          visit(ref);
          llvm::append_range(stack, ref->operands);
        }
  }
}
