//===- Equality.cpp - Do two steps compute equal numbers? -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Equality.h"

using namespace zero;
using namespace zero::prove;

/// Whether |base| is no more than a constant, or nan.
static bool isLimited(BaseRef base) {
  return base->kind == BaseKind::operation && base->name == "minimumf" &&
         llvm::any_of(base->operands,
                      [](Expr a) { return a->asRational().has_value(); });
}

/// |a| without the norms of groups that have no elements. Such a norm is 0
/// times clip coefficients, which are nan only if the rest of |a| is, too.
static Expr withoutEmptyGroups(Algebra &algebra, Expr a) {
  return algebra.substitute(a, [&](BaseRef root) -> Expr {
    if (root->kind != BaseKind::operation || root->name != "sqrt")
      return nullptr;
    Expr sum = root->operands[0];
    auto isFactor = [&](BaseRef base) {
      return llvm::any_of(sum->getTerms(), [&](const Term &term) {
        return term.coefficient.numerator != 0 &&
               llvm::any_of(term.monomial, [&](auto factor) {
                 return factor.first == base && factor.second > 0;
               });
      });
    };
    Expr rest = algebra.mapTerms(sum, [&](const Term &term) {
      bool isEmpty =
          term.coefficient.numerator == 0 &&
          llvm::all_of(term.monomial, [&](auto factor) {
            auto [base, exponent] = factor;
            return exponent > 0 &&
                   (!base->mayBeNan || (isLimited(base) && isFactor(base)));
          });
      return isEmpty ? algebra.integer(0)
                     : algebra.product(term.coefficient, term.monomial);
    });
    return rest == sum ? nullptr : algebra.squareRoot(rest);
  });
}

RealNumbers &Equality::getNumbers(const ParameterSemantics *parameter) {
  if (!facts)
    facts = findFacts(proof.algebra, first, second);
  std::vector<std::pair<std::string, Expr>> key;
  if (parameter)
    for (const IntervalSemantics &interval : parameter->intervals)
      for (auto &[role, number] : interval.roles)
        key.push_back({role, number.expr});
  auto &found = numbers[key];
  if (!found)
    found = std::make_unique<RealNumbers>(
        proof.algebra, parameter
                           ? addFactsOfState(proof.algebra, *facts, *parameter)
                           : *facts);
  return *found;
}

bool Equality::areEqual(Expr a, Expr b, const ParameterSemantics *parameter) {
  if (a == b)
    return true;
  RealNumbers &known = getNumbers(parameter);
  // Facts of state are a precondition, so only where there is no other way.
  if (!withoutState)
    withoutState =
        std::make_unique<RealNumbers>(proof.algebra, Facts{facts->isFinite});
  if (withoutState->areEqual(a, b))
    return true;
  if (!known.areEqual(a, b))
    return false;
  known.getFacts().describe(a, proof.assumed);
  return true;
}

bool Equality::areEqualIfNotApplied(Expr a, Expr b) {
  if (a == b)
    return true;
  a = withoutEmptyGroups(proof.algebra, a);
  b = withoutEmptyGroups(proof.algebra, b);
  if (a == b)
    return true;
  if (!withoutFacts) {
    if (!facts)
      facts = findFacts(proof.algebra, first, second);
    Facts ofCounters = *facts;
    ofCounters.isFinite = false;
    withoutFacts = std::make_unique<RealNumbers>(proof.algebra, Facts());
    withCounters =
        std::make_unique<RealNumbers>(proof.algebra, std::move(ofCounters));
  }
  if (withoutFacts->areEqual(a, b))
    return true;
  if (!withCounters->areEqual(a, b))
    return false;
  withCounters->getFacts().describe(a, proof.assumed);
  return true;
}
