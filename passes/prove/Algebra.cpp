//===- Algebra.cpp - Numbers of a step as polynomials ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include "passes/prove/Roundings.h"

#include "dialect/zero/Placement.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>
#include <unordered_set>

using namespace zero;
using namespace zero::prove;

//===----------------------------------------------------------------------===//
// Fractions
//===----------------------------------------------------------------------===//

std::optional<Rational> prove::normalize(int64_t numerator,
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
      int(base.kind), base.name, int(base.epoch), base.over, base.bits,
      llvm::hash_value(llvm::bit_cast<uint64_t>(base.value)),
      llvm::hash_combine_range(base.operands.begin(), base.operands.end()));
}

static bool isSame(const Base &a, const Base &b) {
  return a.kind == b.kind && a.name == b.name && a.epoch == b.epoch &&
         a.over == b.over && a.bits == b.bits &&
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
  /// A polynomial beside its hash. Most look-ups find another hash, or the
  /// polynomial, so they read few polynomials.
  struct Known {
    size_t hash;
    Expr polynomial;
  };
  struct Wanted {
    size_t hash;
    llvm::ArrayRef<Term> terms;
  };
  struct KnownInfo {
    using Pointers = llvm::DenseMapInfo<Expr>;
    static Known getEmptyKey() { return {0, Pointers::getEmptyKey()}; }
    static Known getTombstoneKey() { return {0, Pointers::getTombstoneKey()}; }
    static unsigned getHashValue(const Known &known) { return known.hash; }
    static unsigned getHashValue(const Wanted &wanted) { return wanted.hash; }
    static bool isEqual(const Known &a, const Known &b) {
      return a.polynomial == b.polynomial;
    }
    static bool isEqual(const Wanted &wanted, const Known &known) {
      return wanted.hash == known.hash &&
             known.polynomial != Pointers::getEmptyKey() &&
             known.polynomial != Pointers::getTombstoneKey() &&
             llvm::equal(wanted.terms, known.polynomial->terms,
                         [](const Term &x, const Term &y) {
                           return x.coefficient == y.coefficient &&
                                  x.monomial == y.monomial;
                         });
    }
  };
  std::vector<std::unique_ptr<Base>> bases;
  std::vector<std::unique_ptr<Polynomial>> polynomials;
  std::unordered_set<const Base *, HashBase, HashBase> knownBases;
  llvm::DenseSet<Known, KnownInfo> knownPolynomials;
  RoundingTable roundings;
  std::map<std::array<Expr, 3>, double> lostBits;
};

Algebra::Algebra() : tables(std::make_unique<Tables>()) {}
Algebra::~Algebra() = default;

RoundingTable &Algebra::getRoundings() { return tables->roundings; }

std::map<std::array<Expr, 3>, double> &Algebra::getKnownLostBits() {
  return tables->lostBits;
}

bool Term::vanishes() const {
  return coefficient.numerator == 0 && llvm::none_of(monomial, [](auto factor) {
           auto [base, exponent] = factor;
           // A count is not zero, but the count of one rank may be.
           return base->mayBeNan ||
                  (exponent < 0 &&
                   (base->kind != BaseKind::symbol || base->own != 0));
         });
}

/// That of a number; constants that are not finite have none.
static double getExponentOf(double value) {
  return value == 0 || !std::isfinite(value) ? 0 : std::log2(std::abs(value));
}

/// See Polynomial::getExponent.
static double getExponentOf(const Base &base) {
  if (base.kind == BaseKind::constant)
    return getExponentOf(base.value);
  if (base.kind != BaseKind::operation || base.operands.empty())
    return 0;
  llvm::StringRef name = base.name;
  double first = base.operands.front()->getExponent();
  double last = base.operands.back()->getExponent();
  if (name == "sqrt")
    return first / 2;
  if (name == "inverse")
    return -first;
  if (name == "mulf")
    return first + last;
  if (name == "divf" || name.starts_with("cmpf") || name == "andi" ||
      name == "ori")
    return 0; // a number over itself, or a truth value
  if (name == "copysign" || base.operands.size() == 1)
    return first;
  // It may be either.
  if (name == "select")
    first = base.operands[1]->getExponent();
  return std::abs(first) > std::abs(last) ? first : last;
}

static double getExponentOf(llvm::ArrayRef<Term> terms) {
  std::optional<double> largest;
  for (const Term &term : terms) {
    double exponent = getExponentOf(term.coefficient.asDouble());
    for (auto [base, power] : term.monomial)
      exponent += double(power) * base->exponent;
    largest = std::max(largest.value_or(exponent), exponent);
  }
  return largest.value_or(0);
}

/// Takes sorted terms without duplicates. No term vanishes.
Expr Algebra::intern(std::vector<Term> terms) {
  llvm::hash_code hash = llvm::hash_value(terms.size());
  for (const Term &term : terms) {
    hash = llvm::hash_combine(hash, term.coefficient.numerator,
                              term.coefficient.denominator);
    for (auto [base, exponent] : term.monomial)
      hash = llvm::hash_combine(hash, base->index, exponent);
  }
  auto it = tables->knownPolynomials.find_as(Tables::Wanted{hash, terms});
  if (it != tables->knownPolynomials.end())
    return it->polynomial;
  auto made = std::make_unique<Polynomial>();
  made->terms = std::move(terms);
  for (const Term &term : made->terms) {
    made->sumOfBases &= term.monomial.size() == 1 &&
                        term.monomial[0].second == 1 &&
                        term.monomial[0].first->kind != BaseKind::operation;
    for (auto [base, exponent] : term.monomial) {
      made->element |= base->isElement;
      made->undefined |= base->isUndefined;
      made->nan |= base->mayBeNan;
      made->gradient |= base->hasGradient;
      made->ownCount |= base->hasOwnCount;
      made->counter |= base->hasCounter;
      made->others |= base->hasOthers;
      made->own |= base->own;
      made->depth = std::max(made->depth, base->depth);
    }
  }
  made->exponent = getExponentOf(made->terms);
  made->index = tables->polynomials.size();
  tables->knownPolynomials.insert({hash, made.get()});
  tables->polynomials.push_back(std::move(made));
  return tables->polynomials.back().get();
}

Expr Algebra::base(Base given) {
  if (given.kind == BaseKind::gradient && axisNames.size() > 1) {
    given.name.clear();
    for (size_t i = 0; i < axisNames.size(); ++i)
      if (given.over >> i & 1)
        given.name += (given.name.empty() ? "'" : ", '") + axisNames[i] + "'";
  }
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
    made->hasGradient = made->kind == BaseKind::gradient;
    made->hasOwnCount =
        made->kind == BaseKind::symbol && made->name == kAccumulation;
    made->hasCounter =
        made->kind == BaseKind::old ||
        (made->kind == BaseKind::symbol && made->name == kLossScale);
    made->hasOthers = !made->hasCounter && made->kind != BaseKind::constant &&
                      made->kind != BaseKind::operation;
    made->mayBeNan =
        made->kind == BaseKind::gradient || made->kind == BaseKind::undefined ||
        made->kind == BaseKind::tokens ||
        (made->kind == BaseKind::constant && !std::isfinite(made->value)) ||
        (made->kind == BaseKind::operation &&
         llvm::is_contained({"inverse", "sqrt", "divf", "subf"}, made->name));
    made->own = made->over;
    for (Expr operand : made->operands) {
      made->isElement |= !sums && operand->isElement();
      made->isUndefined |= operand->isUndefined();
      made->mayBeNan |= operand->mayBeNan();
      made->hasGradient |= operand->hasGradient();
      made->hasCounter |= operand->counter;
      made->hasOthers |= operand->others;
      made->depth = std::max(made->depth, operand->getDepth() + 1);
      if (made->kind == BaseKind::rankSum)
        continue;
      made->own |= operand->getOwn();
      made->hasOwnCount |= operand->hasOwnCount();
    }
    made->exponent = getExponentOf(*made);
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
  bool isMinusZero = value == 0 && std::signbit(value);
  if (std::isfinite(value) && !isMinusZero && scaled == std::floor(scaled) &&
      std::abs(exponent) <= 30) {
    int shift = exponent - 20;
    if (auto fraction =
            shift >= 0 ? normalize(int64_t(scaled) * (int64_t(1) << shift), 1)
                       : normalize(int64_t(scaled), int64_t(1) << -shift))
      return rational(*fraction);
  }
  return base({BaseKind::constant, "", Epoch::all, 0, value});
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
