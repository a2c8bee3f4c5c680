//===- Constants.cpp - What a type makes of constants ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Constants.h"

#include "passes/prove/Magnitudes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/APFloat.h"

#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::prove;
using llvm::APFloat;

static APFloat convert(APFloat value, const llvm::fltSemantics &type) {
  bool losesInfo;
  value.convert(type, APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}

/// The result of |op| in its type; nothing if it does not compute.
static std::optional<APFloat> compute(Operation &op, ArrayRef<double> x) {
  if (op.getNumResults() != 1 || x.empty())
    return std::nullopt;
  auto type = dyn_cast<FloatType>(op.getResult(0).getType());
  auto from = dyn_cast<FloatType>(op.getOperand(0).getType());
  if (!type || !from)
    return std::nullopt;
  constexpr auto kNearest = APFloat::rmNearestTiesToEven;
  SmallVector<APFloat, 3> operands;
  for (double operand : x)
    operands.push_back(convert(APFloat(operand), from.getFloatSemantics()));
  APFloat a = operands[0];
  if (isa<arith::AddFOp>(op))
    a.add(operands[1], kNearest);
  else if (isa<arith::SubFOp>(op))
    a.subtract(operands[1], kNearest);
  else if (isa<arith::MulFOp>(op))
    a.multiply(operands[1], kNearest);
  else if (isa<arith::DivFOp>(op))
    a.divide(operands[1], kNearest);
  else if (isa<math::FmaOp>(op))
    a.fusedMultiplyAdd(operands[1], operands[2], kNearest);
  else if (isa<math::SqrtOp>(op))
    // The root of f64 has enough digits to be rounded once more.
    a = convert(APFloat(std::sqrt(a.convertToDouble())),
                type.getFloatSemantics());
  else if (isa<arith::NegFOp>(op))
    a.changeSign();
  else if (isa<arith::TruncFOp, arith::ExtFOp>(op))
    a = convert(a, type.getFloatSemantics());
  else
    return std::nullopt;
  return a;
}

/// Whether the result of |op| is not 0 over the reals, since it is a product.
static bool isProductOf(Operation &op, ArrayRef<double> operands) {
  return isa<arith::MulFOp, arith::DivFOp, arith::TruncFOp>(op) &&
         operands[0] != 0 && operands.back() != 0;
}

std::optional<Computed> prove::computeConstant(Algebra &algebra, Operation &op,
                                               ArrayRef<double> operands,
                                               Expr result) {
  std::optional<APFloat> computed = compute(op, operands);
  if (!computed)
    return std::nullopt;
  double exact = evaluateConstant(algebra, result);
  Computed constant{
      convert(*computed, APFloat::IEEEdouble()).convertToDouble()};
  if (!computed->isFinite() || !std::isfinite(exact))
    constant.reason = "not finite";
  else if (computed->isZero() && isProductOf(op, operands))
    constant.reason = "0, since its type has no number as small";
  double error = std::abs(constant.value - exact);
  if (!constant.reason.empty() || error == 0)
    return constant;
  // Some operations round a little each, and |exact| is one of f64.
  constexpr int kRounded = 4;
  int digits = APFloat::semanticsPrecision(computed->getSemantics());
  int lost = exact == 0 ? kAllBits
                        : digits + static_cast<int>(std::ceil(
                                       std::log2(error / std::abs(exact))));
  constant.lostBits = lost > kRounded ? std::min(lost, kAllBits) : 0;
  return constant;
}
