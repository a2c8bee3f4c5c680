//===- SignForms.cpp - Numbers whose zeros have a sign --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/SignForms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

static bool isCopySign(Operation &op) { return isa<math::CopySignOp>(op); }

SignForms::SignForms(Algebra &algebra, Block &body)
    : algebra(algebra), hasCopySign(llvm::any_of(body, isCopySign)) {}

/// Whether |form| is the product of a negative constant and other numbers.
static bool isNegative(Expr form) {
  if (form->getTerms().size() != 1)
    return false;
  const Term &term = form->getTerms().front();
  bool isNegative = term.coefficient.numerator < 0;
  for (auto [base, exponent] : term.monomial)
    if (base->kind == BaseKind::constant && base->value < 0 && exponent % 2)
      isNegative = !isNegative;
  return isNegative;
}

Expr SignForms::multiply(Expr a, Expr b) {
  if (a->isZero() || b->isZero())
    return algebra.symmetric("mulf", a, b);
  auto keepSum = [&](Expr sum, Expr factor) {
    return isNegative(factor) && sum->getTerms().size() > 1
               ? algebra.signedSum({sum})
               : sum;
  };
  return algebra.multiply(keepSum(a, b), keepSum(b, a));
}

Expr SignForms::make(Operation &op, Expr result) {
  auto x = [&](unsigned i) { return get(op.getOperand(i)); };
  if (result->asRational() && !result->isZero())
    return result;
  if (isa<arith::AddFOp>(op))
    return algebra.signedSum({x(0), x(1)});
  if (isa<arith::SubFOp>(op))
    return algebra.signedSum({x(0), multiply(algebra.integer(-1), x(1))});
  if (isa<math::FmaOp>(op))
    return algebra.signedSum({multiply(x(0), x(1)), x(2)});
  if (isa<arith::MulFOp>(op))
    return multiply(x(0), x(1));
  if (isa<arith::DivFOp>(op))
    return multiply(x(0), algebra.divide(algebra.integer(1), x(1)));
  if (isa<arith::NegFOp>(op))
    return multiply(algebra.integer(-1), x(0));
  return result;
}
