//===- FoldedConstants.cpp - Constants that f64 cannot tell apart ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/FoldedConstants.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace zero;
using namespace zero::prove;

/// The number that stands for all that are as close to |value|.
double FoldedConstants::choose(double value) {
  constexpr double kClose = 0x1p-48;
  if (value == 0 || !std::isfinite(value))
    return value;
  double margin = std::abs(value) * kClose;
  auto it = chosen.lower_bound(value - margin);
  if (it != chosen.end() && *it <= value + margin)
    return *it;
  chosen.insert(value);
  return value;
}

Expr FoldedConstants::fold(BaseRef base) {
  if (base->operands.empty())
    return algebra.product({1, 1}, {{base, 1}});
  Base copy = *base;
  for (Expr &operand : copy.operands)
    operand = fold(operand);
  if (copy.operands == base->operands)
    return algebra.product({1, 1}, {{base, 1}});
  if (copy.kind != BaseKind::operation)
    return algebra.base(std::move(copy));
  if (copy.operands.size() == 2 && isSymmetric(copy.name))
    return algebra.symmetric(copy.name, copy.operands[0], copy.operands[1]);
  return algebra.operation(copy.name, copy.operands);
}

Expr FoldedConstants::fold(Expr a) {
  if (auto it = known.find(a); it != known.end())
    return it->second;
  // Of products without constants. Sums such as 1/9 - 0.999/9 cancel, and need
  // more digits than those of f64.
  llvm::MapVector<Expr, long double> multiples;
  for (const Term &term : a->getTerms()) {
    long double multiple = (long double)term.coefficient.numerator /
                           (long double)term.coefficient.denominator;
    Expr rest = algebra.integer(1);
    for (auto [base, exponent] : term.monomial)
      if (base->kind == BaseKind::constant)
        multiple *= std::pow((long double)base->value, (long double)exponent);
      else
        rest = algebra.multiply(rest, algebra.power(fold(base), exponent));
    multiples[rest] += multiple;
  }
  Expr sum = algebra.integer(0);
  for (auto [rest, multiple] : multiples)
    sum = algebra.add(
        sum,
        algebra.multiply(algebra.constant(choose(double(multiple))), rest));
  return known[a] = sum;
}
