//===- Choices.cpp - Minima, magnitudes and selections --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A minimum, a magnitude and a selection by a comparison are one of two
// numbers, by the sign of a third one. Where the sign is known it is this
// number. Two of them are equal if their signs are, and their numbers.
//
// Numbers that are compared must be finite: a comparison with nan is false,
// but a minimum with nan is nan. The outcome sees to it that gradients and
// sums of their squares are finite in an applied step.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/RealNumbers.h"

#include "llvm/ADT/SetVector.h"

using namespace zero;
using namespace zero::prove;

/// A number with the sign of |a| - |b|. It is 0 if these are equal.
std::optional<RealNumbers::Real> RealNumbers::getDifference(Expr a, Expr b) {
  if (get(a).isFinite && get(b).isFinite)
    return get(algebra.subtract(a, b));
  return std::nullopt;
}

/// |a|, without factors that are positive.
Expr RealNumbers::getSign(const Real &a) {
  llvm::ArrayRef<Term> terms = a.over->getTerms();
  if (terms.empty())
    return a.over;
  Monomial common;
  for (auto factor : terms[0].monomial)
    if (boundsOfAtoms.lookup(factor.first).isPositive() &&
        llvm::all_of(terms, [&](const Term &term) {
          return llvm::is_contained(term.monomial, factor);
        }))
      common.push_back(factor);
  Rational size = terms[0].coefficient;
  Rational inverse{size.denominator, std::abs(size.numerator)};
  return atoms.mapTerms(a.over, [&](const Term &term) {
    Monomial rest;
    for (auto factor : term.monomial)
      if (!llvm::is_contained(common, factor))
        rest.push_back(factor);
    return atoms.multiply(atoms.rational(inverse),
                          atoms.product(term.coefficient, rest));
  });
}

/// Whether |a| is a product of |b| and one term, so that it is 0 where |b| is.
bool RealNumbers::isMultiple(Expr a, Expr b) {
  if (a->isZero() || b->isZero())
    return a->isZero();
  const Term &first = a->getTerms()[0];
  return llvm::any_of(b->getTerms(), [&](const Term &term) {
    auto factor =
        prove::multiply(first.coefficient, {term.coefficient.denominator,
                                            term.coefficient.numerator});
    Monomial quotient = first.monomial;
    for (auto [base, exponent] : term.monomial) {
      auto *it = llvm::find_if(
          quotient, [b = base](auto each) { return each.first == b; });
      if (it == quotient.end() || it->second < exponent)
        return false;
      it->second -= exponent;
    }
    llvm::erase_if(quotient, [](auto each) { return each.second == 0; });
    return factor &&
           reduce(atoms.multiply(atoms.product(*factor, quotient), b)) == a;
  });
}

/// Whether |a| and |b| have a term in common. Over the reals it cancels where
/// they are compared. In a type it may absorb the others: 1 + 1e-8 > 1 is false
/// in f32.
static bool hideInCommonTerm(Expr a, Expr b) {
  return a != b && llvm::any_of(a->getTerms(), [&](const Term &x) {
           return llvm::any_of(b->getTerms(), [&](const Term &y) {
             return x.monomial == y.monomial && x.coefficient == y.coefficient;
           });
         });
}

std::optional<RealNumbers::Choice> RealNumbers::getChoice(BaseRef base) {
  if (base->kind != BaseKind::operation)
    return std::nullopt;
  llvm::ArrayRef<Expr> x = base->operands;
  auto choose = [&](Expr a, Expr b, Expr ifMore, Expr ifLess,
                    Choice::IfZero ifZero) -> std::optional<Choice> {
    if (hideInCommonTerm(a, b))
      return std::nullopt;
    auto difference = getDifference(a, b);
    if (!difference || (difference->over->isZero() && ifZero != Choice::either))
      return std::nullopt;
    Expr sign = getSign(*difference);
    // "norm > max ? max / norm : 1" has equal numbers where the norm is max.
    const Real gap = get(algebra.subtract(ifMore, ifLess));
    if (gap.isFinite && isMultiple(gap.over, sign))
      ifZero = Choice::either;
    return Choice{sign, difference->bounds, ifMore, ifLess, ifZero};
  };
  if (base->name == "minimumf" || base->name == "minnumf")
    return choose(x[0], x[1], x[1], x[0], Choice::either);
  if (base->name == "maximumf" || base->name == "maxnumf")
    return choose(x[0], x[1], x[0], x[1], Choice::either);
  if (base->name == "absf")
    return choose(x[0], algebra.integer(0), x[0], algebra.negate(x[0]),
                  Choice::either);
  if (base->name != "select")
    return std::nullopt;
  BaseRef condition = x[0]->asBase();
  if (!condition || condition->kind != BaseKind::operation)
    return std::nullopt;
  llvm::StringRef predicate = condition->name;
  if (!predicate.consume_front("cmpf ") ||
      !(predicate.consume_front("o") || predicate.consume_front("u")))
    return std::nullopt;
  Expr a = condition->operands[0], b = condition->operands[1];
  if (predicate == "gt")
    return choose(a, b, x[1], x[2], Choice::less);
  if (predicate == "ge")
    return choose(a, b, x[1], x[2], Choice::more);
  if (predicate == "lt")
    return choose(a, b, x[2], x[1], Choice::more);
  if (predicate == "le")
    return choose(a, b, x[2], x[1], Choice::less);
  return std::nullopt;
}

/// |a| with each choice whose sign is known replaced by its number.
Expr RealNumbers::decide(Expr a) {
  return algebra.substitute(a, [&](BaseRef base) -> Expr {
    auto choice = getChoice(base);
    if (!choice)
      return nullptr;
    bool isSign = choice->bounds.isNotZero();
    if (choice->bounds.isNotNegative() &&
        (isSign || choice->ifZero != Choice::less))
      return choice->ifMore;
    if (choice->bounds.isNotPositive() &&
        (isSign || choice->ifZero != Choice::more))
      return choice->ifLess;
    // x if it is positive, else -x.
    if (base->name == "select" &&
        choice->ifLess == algebra.negate(choice->ifMore) &&
        get(choice->ifMore).isFinite &&
        getSign(get(choice->ifMore)) == choice->sign)
      return algebra.magnitude(choice->ifMore);
    return nullptr;
  });
}

bool RealNumbers::areEqual(const Choice &a, const Choice &b) {
  bool isSame = a.sign == b.sign;
  if (!isSame && a.sign != atoms.negate(b.sign))
    return false;
  Choice::IfZero ifZero = b.ifZero;
  if (!isSame && ifZero != Choice::either)
    ifZero = ifZero == Choice::more ? Choice::less : Choice::more;
  if (a.ifZero != Choice::either && ifZero != Choice::either &&
      a.ifZero != ifZero)
    return false;
  return areEqual(a.ifMore, isSame ? b.ifMore : b.ifLess) &&
         areEqual(a.ifLess, isSame ? b.ifLess : b.ifMore);
}

/// More choices than this in one number are not compared.
static constexpr size_t kMostChoices = 16;

/// |b|, with choices that equal those of |a| replaced by them.
Expr RealNumbers::useChoicesOf(Expr a, Expr b) {
  auto find = [&](Expr number) {
    llvm::SetVector<BaseRef> found;
    visitBases(number, [&](BaseRef base) {
      if (found.size() <= kMostChoices && getChoice(base))
        found.insert(base);
    });
    return found;
  };
  auto known = find(a);
  bool isChanged = known.size() <= kMostChoices;
  while (isChanged) {
    isChanged = false;
    auto others = find(b);
    if (others.size() > kMostChoices)
      return b;
    for (BaseRef other : others) {
      if (known.contains(other))
        continue;
      auto *it = llvm::find_if(known, [&](BaseRef base) {
        return areEqual(*getChoice(base), *getChoice(other));
      });
      if (it == known.end())
        continue;
      Expr instead = algebra.product({1, 1}, {{*it, 1}});
      b = algebra.substitute(
          b, [&](BaseRef base) { return base == other ? instead : nullptr; });
      isChanged = true;
      break;
    }
  }
  return b;
}

bool RealNumbers::areEqual(Expr a, Expr b) {
  if (a == b)
    return true;
  auto [it, isNew] = compared.try_emplace({a, b}, false);
  if (!isNew)
    return it->second;
  Expr x = decide(a);
  Expr y = useChoicesOf(x, decide(b));
  bool isEqual = x == y || areEqual(get(x), get(y));
  compared[{a, b}] = isEqual;
  return isEqual;
}
