//===- ScalarBody.cpp - Runs a region of scalar math ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/ScalarBody.h"

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace zero;
using arith::CmpFPredicate;

static bool isSupported(Operation &op) {
  return isa<arith::ConstantOp, arith::AddFOp, arith::SubFOp, arith::MulFOp,
             arith::DivFOp, arith::NegFOp, arith::CmpFOp, arith::SelectOp,
             arith::MinimumFOp, arith::MaximumFOp, arith::ExtFOp,
             arith::TruncFOp, math::FmaOp, math::SqrtOp, math::AbsFOp,
             math::CopySignOp>(op);
}

FailureOr<ScalarBody> ScalarBody::create(Block &block, bool allowSlots) {
  ScalarBody body;
  body.block = &block;
  for (Operation &op : block.without_terminator())
    if (!isSupported(op) &&
        !(allowSlots && isa<zrt::LoadSlotOp, zrt::StoreSlotOp>(op)))
      return op.emitOpError() << "cannot be interpreted";
  return body;
}

static bool compare(CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case CmpFPredicate::AlwaysFalse:
    return false;
  case CmpFPredicate::OEQ:
    return a == b;
  case CmpFPredicate::OGT:
    return a > b;
  case CmpFPredicate::OGE:
    return a >= b;
  case CmpFPredicate::OLT:
    return a < b;
  case CmpFPredicate::OLE:
    return a <= b;
  case CmpFPredicate::ONE:
    return !unordered && a != b;
  case CmpFPredicate::ORD:
    return !unordered;
  case CmpFPredicate::UEQ:
    return unordered || a == b;
  case CmpFPredicate::UGT:
    return unordered || a > b;
  case CmpFPredicate::UGE:
    return unordered || a >= b;
  case CmpFPredicate::ULT:
    return unordered || a < b;
  case CmpFPredicate::ULE:
    return unordered || a <= b;
  case CmpFPredicate::UNE:
    return a != b;
  case CmpFPredicate::UNO:
    return unordered;
  case CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

/// Whether a number may be on either side of another one.
static bool mayCross(Number a, Number b) {
  double reach = a.bound + b.bound;
  return reach > 0 && std::abs(a.value - b.value) <= reach;
}

/// A choice that rounding may change is off by the distance of the choices.
static Number select(Number condition, Number a, Number b) {
  Number chosen = condition.value != 0 ? a : b;
  if (condition.bound > 0)
    chosen.bound = std::max(a.bound, b.bound) + std::abs(a.value - b.value);
  return chosen;
}

static Number copySign(Number a, Number b) {
  Number result{std::copysign(a.value, b.value), a.bound};
  if (mayCross(b, {0, 0}))
    result.bound += 2 * std::abs(a.value);
  return result;
}

/// minimum of IEEE 754-2019: nan wins, -0 is below +0.
static double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  if (a == b)
    return std::signbit(a) ? a : b;
  return std::min(a, b);
}

static double getConstant(arith::ConstantOp op) {
  auto value = dyn_cast<FloatAttr>(op.getValue());
  return value ? value.getValueAsDouble() : 0;
}

static Number evaluate(Operation &op, ArrayRef<Number> in,
                       const Calculator &calculator) {
  Type type = op.getResult(0).getType();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return {getConstant(constant), 0};
  if (isa<arith::AddFOp>(op))
    return calculator.add(in[0], in[1], type);
  if (isa<arith::SubFOp>(op))
    return calculator.sub(in[0], in[1], type);
  if (isa<arith::MulFOp>(op))
    return calculator.mul(in[0], in[1], type);
  if (isa<arith::DivFOp>(op))
    return calculator.div(in[0], in[1], type);
  if (isa<math::FmaOp>(op))
    return calculator.fma(in[0], in[1], in[2], type);
  if (isa<math::SqrtOp>(op))
    return calculator.sqrt(in[0], type);
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return calculator.convert(in[0], op.getOperand(0).getType(), type);
  if (isa<arith::NegFOp>(op))
    return {-in[0].value, in[0].bound};
  if (isa<math::AbsFOp>(op))
    return {std::abs(in[0].value), in[0].bound};
  if (isa<math::CopySignOp>(op))
    return copySign(in[0], in[1]);
  if (isa<arith::MinimumFOp>(op))
    return {minimum(in[0].value, in[1].value),
            std::max(in[0].bound, in[1].bound)};
  if (isa<arith::MaximumFOp>(op))
    return {-minimum(-in[0].value, -in[1].value),
            std::max(in[0].bound, in[1].bound)};
  if (isa<arith::SelectOp>(op))
    return select(in[0], in[1], in[2]);
  auto cmp = cast<arith::CmpFOp>(op);
  return {compare(cmp.getPredicate(), in[0].value, in[1].value) ? 1.0 : 0.0,
          mayCross(in[0], in[1]) ? 1.0 : 0.0};
}

std::vector<Number> ScalarBody::run(const Calculator &calculator,
                                    ArrayRef<Number> arguments,
                                    OtherFn other) const {
  llvm::DenseMap<Value, Number> numbers;
  for (auto [argument, number] :
       llvm::zip_equal(block->getArguments(), arguments))
    numbers[argument] = number;
  SmallVector<Number> operands;
  for (Operation &op : block->without_terminator()) {
    if (!isSupported(op)) {
      other(op, numbers);
      continue;
    }
    operands.clear();
    for (Value operand : op.getOperands())
      operands.push_back(numbers.lookup(operand));
    numbers[op.getResult(0)] = evaluate(op, operands, calculator);
  }
  std::vector<Number> yields;
  for (Value value : block->getTerminator()->getOperands())
    yields.push_back(numbers.lookup(value));
  return yields;
}
