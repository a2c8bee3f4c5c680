//===- Bodies.cpp - Scalar bodies over the reals --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Number.h"

#include "dialect/zero/ZeroDialect.h"
#include "passes/prove/Constants.h"
#include "passes/prove/Counts.h"
#include "passes/prove/Exactness.h"
#include "passes/prove/LostBits.h"
#include "passes/prove/Magnitudes.h"
#include "passes/prove/RelativeError.h"
#include "passes/prove/SignOfZero.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/Hashing.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Of operations in operations: walks over numbers are recursive.
static constexpr unsigned kDeepest = 1000;

/// The number over the reals; null where the op is not known here.
static Expr evaluate(Algebra &algebra, Operation &op, ArrayRef<Number> x) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      return algebra.constant(number.getValueAsDouble());
    if (auto truth = dyn_cast<BoolAttr>(constant.getValue()))
      return algebra.integer(truth.getValue());
    return nullptr;
  }
  auto keep = [&](StringRef name) {
    return algebra.operation(
        name, llvm::map_to_vector(x, [](Number n) { return n.expr; }));
  };
  auto keepSorted = [&](StringRef name) {
    return algebra.symmetric(name, x[0].expr, x[1].expr);
  };
  if (isa<arith::AddFOp>(op))
    return algebra.add(x[0].expr, x[1].expr);
  if (isa<arith::SubFOp>(op))
    return algebra.subtract(x[0].expr, x[1].expr);
  if (isa<arith::MulFOp>(op))
    return algebra.multiply(x[0].expr, x[1].expr);
  if (isa<arith::DivFOp>(op))
    return algebra.divide(x[0].expr, x[1].expr);
  if (isa<math::FmaOp>(op))
    return algebra.add(algebra.multiply(x[0].expr, x[1].expr), x[2].expr);
  if (isa<math::SqrtOp>(op))
    return algebra.squareRoot(x[0].expr);
  if (isa<arith::NegFOp>(op))
    return algebra.negate(x[0].expr);
  // No code rounds but to nearest even.
  if (auto truncate = dyn_cast<arith::TruncFOp>(op))
    return truncate.getRoundingmode() ? nullptr : x[0].expr;
  if (isa<arith::ExtFOp>(op))
    return x[0].expr;
  if (isa<math::AbsFOp>(op))
    return algebra.magnitude(x[0].expr);
  if (isa<math::CopySignOp>(op))
    return keep("copysign");
  if (isa<arith::MinimumFOp>(op))
    return keepSorted("minimumf");
  if (isa<arith::MinNumFOp>(op))
    return keepSorted("minnumf");
  if (isa<arith::MaximumFOp>(op))
    return keepSorted("maximumf");
  if (isa<arith::MaxNumFOp>(op))
    return keepSorted("maxnumf");
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    // Neither true nor false.
    for (const Number &number : x)
      if (number.expr->isUndefined())
        return number.expr;
    using Predicate = arith::CmpFPredicate;
    Predicate predicate = compare.getPredicate();
    std::string name =
        ("cmpf " + arith::stringifyCmpFPredicate(predicate)).str();
    bool isSymmetric =
        llvm::is_contained({Predicate::OEQ, Predicate::ONE, Predicate::UEQ,
                            Predicate::UNE, Predicate::ORD, Predicate::UNO},
                           predicate);
    return isSymmetric ? keepSorted(name) : keep(name);
  }
  if (isa<arith::SelectOp>(op)) {
    if (auto condition = x[0].expr->asRational())
      return x[condition->numerator ? 1 : 2].expr;
    // A second selection by the same condition has no effect.
    auto choose = [&](Expr side, int operand) {
      BaseRef base = side->asBase();
      return base && base->kind == BaseKind::operation &&
                     base->name == "select" && base->operands[0] == x[0].expr
                 ? base->operands[operand]
                 : side;
    };
    Expr taken = choose(x[1].expr, 1), other = choose(x[2].expr, 2);
    return taken == other
               ? taken
               : algebra.operation("select", {x[0].expr, taken, other});
  }
  if (isa<arith::AndIOp>(op))
    return keepSorted("andi");
  if (isa<arith::OrIOp>(op))
    return keepSorted("ori");
  return nullptr;
}

/// Whether |op| selects one of two numbers that are one. Its condition has no
/// effect then. An input in it has: where it is nan the step is refused.
static bool selectsNothing(Operation &op, ArrayRef<Number> x) {
  if (!isa<arith::SelectOp>(op) || x[1].expr != x[2].expr)
    return false;
  std::set<std::string> inputs;
  x[0].roundings.addNames(SourceKind::input, inputs);
  return inputs.empty();
}

/// What |op| makes of constants; nothing of other numbers. Over the reals it
/// makes |result|.
static std::optional<Computed> makeOfConstants(Algebra &algebra, Operation &op,
                                               ArrayRef<Number> x,
                                               Expr result) {
  SmallVector<double> operands;
  for (const Number &number : x) {
    bool isKnown = number.computed || number.error == 0;
    if (!isConstant(number.expr) || !isKnown)
      return std::nullopt;
    operands.push_back(
        number.computed.value_or(evaluateConstant(algebra, number.expr)));
  }
  return prove::computeConstant(algebra, op, operands, result);
}

/// Where a counter, or a selection of numbers, is computed again by |op|, or
/// before it; null: nowhere. Times 1 and plus 0 are exact.
static Expr findComputedAgain(Algebra &algebra, Operation &op,
                              ArrayRef<Number> x, Expr result) {
  if (isa<arith::SelectOp>(op)) {
    Expr taken = x[1].computedAgain, other = x[2].computedAgain;
    if (taken == other)
      return taken;
    if (auto condition = x[0].expr->asRational())
      return condition->numerator ? taken : other;
    Expr nowhere = algebra.integer(0);
    return algebra.operation("select", {x[0].expr, taken ? taken : nowhere,
                                        other ? other : nowhere});
  }
  if (isa<arith::TruncFOp, arith::ExtFOp, arith::NegFOp, math::AbsFOp>(op))
    return x[0].computedAgain;
  // The sign is no digit.
  auto terms = result->getTerms();
  BaseRef base = terms.size() == 1 && terms[0].monomial.size() == 1 &&
                         terms[0].monomial[0].second == 1 &&
                         std::abs(terms[0].coefficient.numerator) == 1 &&
                         terms[0].coefficient.denominator == 1
                     ? terms[0].monomial[0].first
                     : nullptr;
  if (!base || (base->kind != BaseKind::old &&
                (base->kind != BaseKind::operation || base->name != "select")))
    return nullptr;
  bool isNeutral = llvm::any_of(x, [](const Number &number) {
    auto value = number.expr->asRational();
    return value && number.error == 0 &&
           (*value == Rational{0, 1} || *value == Rational{1, 1}) &&
           number.computed.value_or(value->asDouble()) == value->asDouble();
  });
  for (const Number &number : x)
    if (x.size() == 2 && isNeutral && number.expr == result)
      return number.computedAgain;
  return algebra.integer(1);
}

/// The digits that |result| of |op| loses since terms of its operands cancel.
static double findBitsLostBy(Algebra &algebra, Operation &op,
                             ArrayRef<Number> x, Expr result) {
  if (!isa<arith::AddFOp, arith::SubFOp, math::FmaOp>(op))
    return 0;
  // A number minus itself is 0, or it is nan.
  if (isa<arith::SubFOp>(op) && op.getOperand(0) == op.getOperand(1))
    return 0;
  SmallVector<Expr> addends{x.front().expr, x.back().expr};
  if (isa<math::FmaOp>(op))
    addends[0] = algebra.multiply(x[0].expr, x[1].expr);
  // A product or a rounded quotient of other numbers is no count, even if it is
  // one over the reals.
  bool areCounts = llvm::all_of(
      x, [](const Number &n) { return isExactCount(n.expr) && !n.rounding; });
  if (!areCounts && llvm::all_of(addends, isExactCount) &&
      !llvm::all_of(addends, isConstant))
    return getLostBits(algebra, addends, result);
  return findLostBits(algebra, addends, result);
}

/// The way of what |op| computes of |x|.
static uint64_t getWay(Operation &op, ArrayRef<Number> x) {
  if (isa<arith::TruncFOp>(op))
    return x[0].getWayTo(op.getResult(0).getType());
  if (x.empty())
    return 0; // a constant
  if (isa<arith::ExtFOp>(op))
    return x[0].way;
  uint64_t way = llvm::hash_value(&op);
  for (const Number &number : x)
    way = combineWays(way, number.getWayFrom());
  return way;
}

/// The error of |value| is known if it is the fraction |exact| over the reals.
/// A fraction that f64 does not have is rounded.
static void setErrorOfConstant(Rational exact, double value, Number &result) {
  result.losses = 0;
  result.error =
      exact.numerator == 0 ? 0 : std::abs(value / exact.asDouble() - 1);
  if (!llvm::isPowerOf2_64(exact.denominator))
    result.error += std::numeric_limits<double>::epsilon() / 2;
}

void prove::addCondition(Conditions &conditions, const Number &condition) {
  auto [it, isNew] = conditions.insert({condition.expr, condition});
  if (!isNew)
    it->second.narrowAs(condition);
}

FailureOr<SmallVector<Number>> prove::evaluateBody(
    Algebra &algebra, Block &block, ArrayRef<Number> arguments,
    llvm::function_ref<FailureOr<Number>(Operation &, ArrayRef<Number>)> other,
    Conditions *conditions) {
  llvm::DenseMap<Value, Number> numbers;
  for (auto [argument, number] :
       llvm::zip_equal(block.getArguments(), arguments))
    numbers[argument] = number;
  auto getOperands = [&](Operation &op) {
    return llvm::map_to_vector(
        op.getOperands(), [&](Value value) { return numbers.lookup(value); });
  };
  for (Operation &op : block.without_terminator()) {
    // What was of the narrow type is what it was.
    if (auto truncate = dyn_cast<arith::TruncFOp>(op))
      if (auto extend = truncate.getIn().getDefiningOp<arith::ExtFOp>();
          extend && extend.getIn().getType() == truncate.getType()) {
        numbers[truncate] = numbers.lookup(extend.getIn());
        continue;
      }
    SmallVector<Number> operands = getOperands(op);
    Number result;
    result.expr = evaluate(algebra, op, operands);
    if (!result.expr) {
      FailureOr<Number> given = failure();
      if (other)
        given = other(op, operands);
      if (failed(given)) {
        return op.emitOpError() << "is not known to the proof";
      }
      result = *given;
    } else {
      std::optional<Computed> computed =
          makeOfConstants(algebra, op, operands, result.expr);
      if (computed && !computed->reason.empty())
        result.expr = algebra.undefined(
            "an operation on constants with a result that is " +
            computed->reason);
      if (isa<arith::SelectOp>(op) && conditions)
        addCondition(*conditions, operands[0]);
      // A truth value is as good as the numbers that were compared.
      for (const Number &operand :
           ArrayRef(operands).drop_front(selectsNothing(op, operands)))
        result.narrowAs(operand);
      if (result.roundings.isEmpty()) {
        Operation *rounding = result.rounding;
        result = makeSource(algebra, result.expr);
        result.rounding = rounding;
      }
      if (isa<arith::TruncFOp, arith::ExtFOp>(op)) {
        result.arrived = operands[0].arrived;
        result.arrivedAs = operands[0].arrivedAs;
      }
      result.way = getWay(op, operands);
      double computedBits = 0;
      double lostBits = findBitsLostBy(algebra, op, operands, result.expr);
      if (computed) {
        result.computed = computed->value;
        computedBits = computed->lostBits;
      }
      result.computedAgain =
          findComputedAgain(algebra, op, operands, result.expr);
      computeError(op, operands, lostBits, result);
      if (auto exact = result.expr->asRational(); computed && exact)
        setErrorOfConstant(*exact, computed->value, result);
      lostBits = std::max(lostBits, computedBits);
      result.lose(lostBits);
      if (!result.rounding && (lostBits > 0 || mayRound(op, operands, result)))
        result.rounding = &op;
      if (op.getNumResults() == 1)
        result.narrow(Precision(op.getResult(0).getType()));
      // Two conversions may round twice.
      if (isa<arith::TruncFOp>(op)) {
        result.beforeConversion = operands[0].roundings;
        result.errorBeforeConversion = operands[0].error;
      }
    }
    if (result.expr && result.expr->getDepth() > kDeepest)
      return op.emitOpError() << "depends on " << kDeepest
                              << " operations one after the other, which is "
                                 "more than the proof reads";
    if (op.getNumResults() == 1)
      numbers[op.getResult(0)] = result;
  }
  auto isZero = [&](Value value) {
    return matchPattern(value, m_AnyZeroFloat()) ||
           numbers.lookup(value).computed == 0.0;
  };
  for (auto op : block.getOps<math::CopySignOp>())
    if (failed(checkSign(op, isZero)))
      return failure();
  return getOperands(*block.getTerminator());
}
