//===- Exactness.cpp - Arithmetic that an outcome may depend on -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Exactness.h"

#include "passes/prove/Counts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Whether |a| is an addition of sums over elements. A term with the factor 0
/// is 0 or nan.
static bool isSumOfSums(Expr a) {
  return llvm::all_of(a->getTerms(), [](const Term &term) {
    return term.coefficient.numerator == 0 ||
           (term.coefficient.numerator > 0 && !term.monomial.empty() &&
            llvm::all_of(term.monomial, [](auto factor) {
              BaseKind kind = factor.first->kind;
              return factor.second == 1 &&
                     (kind == BaseKind::sumOver || kind == BaseKind::once);
            }));
  });
}

/// Whether |product| is a sum of sums times a constant that is not negative,
/// and is finite where each sum is, see kLargestExponent.
static bool isMultipleOfSum(Expr product, ArrayRef<Number> factors) {
  constexpr int64_t kLargest = int64_t(1) << 32;
  return llvm::all_of(product->getTerms(),
                      [](const Term &term) {
                        return term.coefficient.numerator <= kLargest &&
                               term.coefficient.denominator <= kLargest;
                      }) &&
         isSumOfSums(product) &&
         llvm::any_of(factors, [](const Number &factor) {
           return factor.expr->asRational().has_value();
         });
}

static bool isUnit(Expr a) {
  auto number = a->asRational();
  return number && number->denominator == 1 && std::abs(number->numerator) <= 1;
}

/// Whether |product| is a constant times a sum over ranks or a count.
static bool isMultipleOfCount(Expr product, ArrayRef<Number> factors) {
  return product->getTerms().size() == 1 &&
         product->getTerms()[0].monomial.size() == 1 &&
         llvm::any_of(factors, [](const Number &factor) {
           return factor.expr->asRational().has_value();
         });
}

bool prove::mayRound(Operation &op, ArrayRef<Number> x, const Number &result) {
  auto areCounts = [&] {
    return llvm::all_of(
        x, [](const Number &number) { return isExactCount(number.expr); });
  };
  if (isa<arith::AddFOp>(op))
    return !(areCounts() && isExactCount(result.expr)) &&
           !llvm::all_of(x, [](const Number &number) {
             return isSumOfSums(number.expr);
           });
  if (isa<arith::SubFOp>(op))
    return op.getOperand(0) != op.getOperand(1) &&
           !(areCounts() && isExactCount(result.expr));
  if (isa<arith::MulFOp>(op))
    return !isUnit(x[0].expr) && !isUnit(x[1].expr) &&
           !isMultipleOfSum(result.expr, x) &&
           !(areCounts() &&
             (isExactCount(result.expr) || isMultipleOfCount(result.expr, x)));
  // Two numbers of counts that are rounded may become equal.
  if (isa<arith::CmpFOp>(op))
    return op.getOperand(0) != op.getOperand(1) &&
           llvm::none_of(x, [](const Number &number) {
             return !isOfCounts(number.expr) || isExactCount(number.expr);
           });
  return isa<arith::DivFOp, arith::TruncFOp, math::FmaOp, math::SqrtOp>(op);
}
