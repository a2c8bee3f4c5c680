//===- SignOfZero.cpp - Signs that a step may depend on -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/SignOfZero.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace zero;

/// Whether |condition| compares |number| with 0. Returns in |isTrueAtZero| what
/// it is where |number| is 0.
static bool comparesWithZero(Value condition, Value number,
                             llvm::function_ref<bool(Value)> isZero,
                             bool &isTrueAtZero) {
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  if (!compare)
    return false;
  Value other = compare.getLhs() == number   ? compare.getRhs()
                : compare.getRhs() == number ? compare.getLhs()
                                             : Value();
  if (!other || !isZero(other))
    return false;
  using Predicate = arith::CmpFPredicate;
  isTrueAtZero = llvm::is_contained(
      {Predicate::OEQ, Predicate::UEQ, Predicate::OGE, Predicate::UGE,
       Predicate::OLE, Predicate::ULE, Predicate::ORD, Predicate::AlwaysTrue},
      compare.getPredicate());
  return true;
}

/// Whether the value of |use| has no effect where |number| is 0.
static bool isUnusedAtZero(OpOperand &use, Value number,
                           llvm::function_ref<bool(Value)> isZero) {
  auto select = dyn_cast<arith::SelectOp>(use.getOwner());
  bool isTrueAtZero = false;
  if (!select || use.getOperandNumber() == 0 ||
      !comparesWithZero(select.getCondition(), number, isZero, isTrueAtZero))
    return false;
  bool isTrueArm = use.getOperandNumber() == 1;
  return isTrueArm != isTrueAtZero;
}

LogicalResult prove::checkSign(math::CopySignOp op,
                               llvm::function_ref<bool(Value)> isZero) {
  Value number = op.getRhs();
  if (matchPattern(number, m_Constant()) ||
      llvm::all_of(op->getUses(), [&](OpOperand &use) {
        return isUnusedAtZero(use, number, isZero);
      }))
    return success();
  return op.emitOpError()
         << "takes the sign of a number that may be 0, and the sign of 0 "
            "depends on the order of operations; select its result only where "
            "a comparison of the number with 0 says that it is not 0";
}
