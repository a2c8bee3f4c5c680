//===- RelativeError.cpp - How rounding errors grow -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/RelativeError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/Format.h"

#include <climits>
#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Half the distance of two numbers of |type| near 1.
static double getUnit(Precision type) {
  return std::ldexp(1, -static_cast<int>(type.mantissa));
}

/// The type in which a number is computed that is kept as |type|.
static Precision getComputedType(Precision type) {
  return type.limitedBy(Precision::f64()).widenedTo(Precision::f32());
}

void prove::loseDigits(Number &number, double bits) {
  if (bits < kAllBits)
    number.error *= std::exp2(bits);
  else if (number.losses != UINT_MAX)
    ++number.losses;
}

/// The error of the condition of a selection. Where numbers are a little wrong
/// their comparison is only if they are almost equal, as it may be if they are
/// rounded.
static double getErrorOfChoice(const Number &condition) {
  constexpr double kLittle = 1.0 / 1024;
  return condition.error > kLittle ? condition.error : 0;
}

/// Whether |a| is a whole number plus or minus at most one counter. Counters
/// that are compared for equality are whole numbers, which no addition rounds.
static bool isCounterAndWhole(Expr a) {
  unsigned counters = 0;
  for (const Term &term : a->getTerms()) {
    bool isWhole = term.coefficient.denominator == 1;
    bool isCounter = term.monomial.size() == 1 &&
                     term.monomial[0].first->kind == BaseKind::old &&
                     term.monomial[0].second == 1 &&
                     std::abs(term.coefficient.numerator) == 1;
    if (!isWhole || !(isCounter || term.monomial.empty()))
      return false;
    counters += isCounter;
  }
  return counters <= 1;
}

/// Whether products and quotients by |number| are exact.
static bool isPowerOf2(const Number &number) {
  auto value = number.expr->asRational();
  return value && number.error == 0 && value->numerator != 0 &&
         llvm::isPowerOf2_64(std::abs(value->numerator)) &&
         llvm::isPowerOf2_64(value->denominator);
}

void prove::computeError(Operation &op, ArrayRef<Number> operands,
                         double lostBits, Number &result) {
  result.error = 0;
  result.losses = 0;
  for (const Number &operand : operands) {
    result.error = std::max(result.error, operand.error);
    result.losses = std::max(result.losses, operand.losses);
  }
  if (isa<arith::SelectOp>(op))
    result.error = std::max(
        {operands[1].error, operands[2].error, getErrorOfChoice(operands[0])});
  // See mayRound() for an outcome, which compares counts.
  auto isCounter = [](const Number &number) {
    return number.expr->isOfCounters() || isConstant(number.expr);
  };
  if (isa<arith::CmpFOp>(op) && llvm::all_of(operands, isCounter)) {
    double unit = getUnit(Precision(op.getOperand(0).getType()));
    result.roundingsCompared =
        std::max(result.roundingsCompared,
                 std::round((operands[0].error + operands[1].error) / unit));
  }
  if (op.getNumResults() != 1 || !isa<FloatType>(op.getResult(0).getType()))
    return;
  double unit = getUnit(Precision(op.getResult(0).getType()));
  bool isSame =
      op.getNumOperands() == 2 && op.getOperand(0) == op.getOperand(1);
  // x - x and x / x are exact.
  if (isSame && isa<arith::SubFOp, arith::DivFOp>(op)) {
    result.error = 0;
    result.losses = 0;
  } else if (isa<arith::MulFOp, arith::DivFOp>(op)) {
    bool isExact = isPowerOf2(operands[1]) ||
                   (isa<arith::MulFOp>(op) && isPowerOf2(operands[0]));
    result.error = operands[0].error + operands[1].error + (isExact ? 0 : unit);
  } else if (isa<arith::TruncFOp>(op)) {
    result.error += unit;
  } else if (isa<math::SqrtOp>(op)) {
    result.error = operands[0].error / 2 + unit;
  } else if (isa<math::FmaOp>(op)) {
    result.error =
        std::max(operands[0].error + operands[1].error, operands[2].error) +
        unit;
    loseDigits(result, lostBits);
  } else if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    // Nothing but errors is left of a sum that is 0.
    bool isGone = result.expr->isZero() && result.error > 0;
    result.error += isCounterAndWhole(result.expr) ? 0 : unit;
    loseDigits(result, isGone ? kAllBits : lostBits);
  }
}

/// An example of two roundings.
static constexpr char kRoundedTwice[] =
    "counterexample: 1 / 49 * 49 is 0.99999999999999989";

void prove::countConversion(Number &number, Type type) {
  if (Precision(type).mantissa < Precision::f64().mantissa)
    number.error += getUnit(Precision(type));
}

std::optional<Beyond> prove::findGrowth(const Number &number,
                                        const Number &expected,
                                        Precision type) {
  if (number.losses > expected.losses)
    return Beyond{
        "a term is added that is taken away again, so digits are lost",
        showLost(kAllBits, /*expected=*/0)};
  // One rounding keeps the order of two numbers.
  double mostCompared = std::max(1.0, expected.roundingsCompared);
  if (number.roundingsCompared > mostCompared) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "counters are compared that were rounded "
        << llvm::format("%.6g", number.roundingsCompared)
        << " times, expected at most " << llvm::format("%.6g", mostCompared)
        << ", so equal ones may differ";
    return Beyond{text, kRoundedTwice};
  }
  // Either step may round a number some times more. That of the zero dialect
  // counts no roundings of roots and of a conversion to |type|.
  constexpr double kTimes = 4, kUnits = 64;
  double most = kTimes * expected.error +
                kUnits * getUnit(getComputedType(type)) + 2 * getUnit(type);
  if (number.error <= most)
    return std::nullopt;
  std::string text, example;
  llvm::raw_string_ostream os(text);
  os << "operations multiply rounding errors ";
  if (std::isinf(number.error))
    os << "without bound";
  else
    os << "to " << llvm::format("%.2g", number.error) << " of the number";
  os << ", expected at most " << llvm::format("%.2g", most);
  auto show = [&](double error) { return llvm::format("%.10g", 1 + error); };
  llvm::raw_string_ostream(example)
      << "counterexample: what is 1 may be computed as " << show(number.error)
      << ", expected at most " << show(most);
  return Beyond{text, example};
}

/// Whether |a| is a whole number of whole numbers. Not known where many choices
/// are in each other.
static bool isWhole(Expr a) {
  constexpr unsigned kDeepest = 16;
  return a->getDepth() <= kDeepest &&
         llvm::all_of(a->getTerms(), [](const Term &term) {
           return term.coefficient.denominator == 1 &&
                  llvm::all_of(term.monomial, [](auto factor) {
                    BaseRef base = factor.first;
                    bool isSelected = base->kind == BaseKind::operation &&
                                      base->name == "select" &&
                                      isWhole(base->operands[1]) &&
                                      isWhole(base->operands[2]);
                    return factor.second > 0 &&
                           (isSelected || base->kind == BaseKind::old);
                  });
         });
}

std::optional<Beyond> prove::findGrowthOfCounter(const Number &number,
                                                 const Number &expected) {
  double unit = getUnit(Precision::f64());
  if (number.error <= std::max(unit, expected.error) || !isWhole(expected.expr))
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text)
      << "it is rounded " << llvm::format("%.6g", number.error / unit)
      << " times, expected at most "
      << llvm::format("%.6g", std::max(1.0, expected.error / unit))
      << ", so it may differ from what it is compared with";
  return Beyond{text, kRoundedTwice};
}

Precision prove::getScalarType(Expr a, const StepSemantics &semantics) {
  bool hasSums = false;
  visitBases(a,
             [&](BaseRef base) { hasSums |= base->kind == BaseKind::sumOver; });
  Precision type = Precision::f64();
  if (hasSums)
    for (auto &[name, parameter] : semantics.parameters)
      type = type.limitedBy(parameter.kept);
  return type;
}
