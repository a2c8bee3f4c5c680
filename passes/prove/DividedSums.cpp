//===- DividedSums.cpp - Sums over numbers that may be 0 ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum over a number that is 0 is infinite. The quotients of its terms are
// infinite, too, and their sum is nan if they have two signs. So a sum that is
// divided by a number that may be 0 stays one factor: an operation sum(a + b).
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Algebra.h"

#include "llvm/ADT/STLExtras.h"

using namespace zero;
using namespace zero::prove;

bool prove::dividesByZero(const Monomial &monomial) {
  return llvm::any_of(monomial, [](auto factor) {
    return factor.second < 0 && !isNeverZero(factor.first);
  });
}

bool prove::isDividedSum(BaseRef base) {
  return base->kind == BaseKind::operation && base->name == "sum";
}

/// |a| as a product of the factors that all its terms share and one sum. |a|
/// must have several terms.
Expr Algebra::asFactor(Expr a) {
  const Term &first = a->terms[0];
  Monomial common;
  for (auto [base, exponent] : first.monomial) {
    int64_t least = exponent;
    bool isEverywhere = true;
    for (const Term &term : a->terms) {
      const auto *it = llvm::find_if(
          term.monomial, [&, b = base](auto f) { return f.first == b; });
      isEverywhere &= it != term.monomial.end();
      if (isEverywhere)
        least = std::min(least, it->second);
    }
    if (isEverywhere && !isDividedSum(base))
      common.push_back({base, least});
  }
  std::vector<Term> rest;
  for (const Term &term : a->terms) {
    auto coefficient =
        normalize(first.coefficient.denominator, first.coefficient.numerator);
    if (coefficient)
      coefficient = prove::multiply(term.coefficient, *coefficient);
    if (!coefficient)
      return operation("sum", {a});
    Monomial monomial;
    for (auto [base, exponent] : term.monomial) {
      const auto *it =
          llvm::find_if(common, [&, b = base](auto f) { return f.first == b; });
      if (it != common.end())
        exponent -= it->second;
      if (exponent != 0)
        monomial.push_back({base, exponent});
    }
    rest.push_back({*coefficient, std::move(monomial)});
  }
  Monomial factors = std::move(common);
  Expr merged = merge(std::move(rest));
  if (!merged)
    return operation("sum", {a});
  Expr sum = operation("sum", {joinSums(merged)});
  factors.push_back({sum->asBase(), 1});
  llvm::sort(factors,
             [](auto x, auto y) { return x.first->index < y.first->index; });
  return product(first.coefficient, factors);
}

/// The terms of |a| that divide by a number that may be 0, each times |b|,
/// which has several terms, and the others times |b|.
Expr Algebra::multiplyFactor(Expr a, Expr b) {
  Expr factor = asFactor(b);
  Expr sum = integer(0);
  std::vector<Term> others;
  for (const Term &term : a->terms)
    if (dividesByZero(term.monomial))
      sum = add(sum, multiply(intern({term}), factor));
    else
      others.push_back(term);
  return others.empty() ? sum : add(sum, multiply(intern(others), b));
}

/// Expands each sum that no number that may be 0 divides, and joins the other
/// sums of a term to one.
Expr Algebra::joinSums(Expr a) {
  return mapTerms(a, [&](const Term &term) {
    Expr sum = integer(1);
    Monomial rest;
    int64_t count = 0;
    for (auto [base, exponent] : term.monomial)
      if (isDividedSum(base)) {
        count += exponent;
        sum = multiply(sum, power(base->operands[0], exponent));
      } else {
        rest.push_back({base, exponent});
      }
    bool divides = dividesByZero(rest);
    if (count == 0 || (divides && count == 1))
      return product(term.coefficient, term.monomial);
    return multiply(product(term.coefficient, rest), sum);
  });
}
