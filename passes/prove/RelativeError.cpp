//===- RelativeError.cpp - How rounding errors grow -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/RelativeError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Half the distance of two numbers of |type| near 1.
static double getUnit(Precision type) {
  return std::ldexp(1, -static_cast<int>(std::min(type.mantissa, 1000u)));
}

double prove::getError(Operation &op, ArrayRef<Number> operands, Expr result,
                       double lostBits) {
  if (op.getNumResults() != 1 || !isa<FloatType>(op.getResult(0).getType()))
    return 0;
  double unit = getUnit(Precision(op.getResult(0).getType()));
  double most = 0;
  for (const Number &operand :
       operands.drop_front(isa<arith::SelectOp>(op) ? 1 : 0))
    most = std::max(most, operand.error);
  bool isSame =
      op.getNumOperands() == 2 && op.getOperand(0) == op.getOperand(1);
  // x - x and x / x are exact.
  if (isSame && isa<arith::SubFOp, arith::DivFOp>(op))
    return 0;
  if (isa<arith::MulFOp, arith::DivFOp>(op))
    return operands[0].error + operands[1].error + unit;
  if (isa<math::SqrtOp>(op))
    return operands[0].error / 2 + unit;
  if (isa<math::FmaOp>(op))
    most = std::max(operands[0].error + operands[1].error, operands[2].error) +
           unit;
  if (!isa<math::FmaOp, arith::AddFOp, arith::SubFOp>(op))
    return most;
  // Nothing but errors is left of a sum that is 0.
  if (result->isZero() && most > 0)
    return HUGE_VAL;
  return lostBits > 0 ? (most + unit) * std::exp2(lostBits) : most;
}

std::optional<Beyond> prove::findGrowth(const Number &number,
                                        const Number &expected,
                                        Precision type) {
  // Either step may round a number some times more, on the way to a sum over
  // elements, too.
  constexpr double kTimes = 4, kUnits = 16;
  double most = kTimes * expected.error + kUnits * getUnit(type);
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
