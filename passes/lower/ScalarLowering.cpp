//===- ScalarLowering.cpp - Scalars become slots and f64 programs ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/ScalarLowering.h"

#include "dialect/zero/Outcome.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

#include <limits>

using namespace mlir;
using namespace zero;
using arith::CmpFPredicate;

//===----------------------------------------------------------------------===//
// Programs and slots
//===----------------------------------------------------------------------===//

OpBuilder &ScalarLowering::body() {
  if (!open) {
    openProgram = program.scalarProgram("scalars");
    open = OpBuilder::atBlockEnd(&openProgram.getBody().front());
  }
  return *open;
}

void ScalarLowering::flush() {
  if (!open)
    return;
  open->create<zrt::YieldOp>(program.getLoc(), ValueRange());
  handler.call<zrt::RunScalarsOp>(FlatSymbolRefAttr::get(openProgram));
  open.reset();
  registers.clear();
}

Value ScalarLowering::load(Slot slot) {
  OpBuilder &builder = body();
  return builder.create<zrt::LoadSlotOp>(program.getLoc(), builder.getF64Type(),
                                         slot.slots,
                                         builder.getI64IntegerAttr(slot.index));
}

Value ScalarLowering::get(Value scalar) {
  body();
  Value &number = registers[scalar];
  if (!number)
    number = load(slotOf.lookup(scalar));
  return number;
}

void ScalarLowering::storeNumber(Value number, Slot slot) {
  OpBuilder &builder = body();
  builder.create<zrt::StoreSlotOp>(program.getLoc(), number, slot.slots,
                                   builder.getI64IntegerAttr(slot.index));
}

void ScalarLowering::keepCounters(ArrayRef<Value> old, Slot counters) {
  if (old.empty())
    return;
  SmallVector<double> zeros(old.size(), 0.0);
  Slot slot{program.slots(counters.slots.getValue() + ".before", zeros), 0};
  kept.push_back({counters, slot, old.size()});
  for (Value value : old)
    storeNumber(value, {slot.slots, slot.index++});
}

void ScalarLowering::restoreCounters(HandlerBuilder &calls) {
  openProgram = program.scalarProgram("restore");
  open = OpBuilder::atBlockEnd(&openProgram.getBody().front());
  // The first value that was kept is the oldest.
  for (const Kept &counters : llvm::reverse(kept))
    for (auto [i, old] : llvm::enumerate(loadAll(counters.old, counters.count)))
      storeNumber(old, {counters.counters.slots, static_cast<int64_t>(i)});
  open->create<zrt::YieldOp>(program.getLoc(), ValueRange());
  calls.call<zrt::RunScalarsOp>(FlatSymbolRefAttr::get(openProgram));
  open.reset();
}

void ScalarLowering::store(Value scalar, Slot slot) {
  storeNumber(get(scalar), slot);
}

void ScalarLowering::storeConstant(double value, Slot slot) {
  storeNumber(constant(value), slot);
}

void ScalarLowering::define(Value scalar, Value number) {
  Slot slot{program.slots("scalar", {0.0}), 0};
  slotOf[scalar] = slot;
  registers[scalar] = number;
  storeNumber(number, slot);
}

Value ScalarLowering::constant(double value) {
  OpBuilder &builder = body();
  return builder.create<arith::ConstantOp>(program.getLoc(),
                                           builder.getF64FloatAttr(value));
}

//===----------------------------------------------------------------------===//
// Math
//===----------------------------------------------------------------------===//

Value ScalarLowering::evaluate(FactorOp op) {
  // One division at the end: products of small integers are exact.
  Value numerator = constant(1.0);
  Value denominator = constant(1.0);
  Location loc = numerator.getLoc();
  for (const ScaleFactor &factor : op.getScale().getFactors()) {
    StringRef symbol = factor.symbol.getValue();
    Value base = symbol == kAccumulation ? load(backwards)
                 : symbol == kTokens     ? get(op.getTokens())
                 : symbol == kLossScale  ? get(op.getLossScale())
                                         : constant(*mesh.getAxisSize(symbol));
    for (int64_t i = 0; i < std::abs(factor.exponent); ++i) {
      Value &side = factor.exponent > 0 ? numerator : denominator;
      side = body().create<arith::MulFOp>(loc, side, base);
    }
  }
  return body().create<arith::DivFOp>(loc, numerator, denominator);
}

Value ScalarLowering::replaceUnlessDivisor(Value number, Value instead,
                                           Value result) {
  using Limits = std::numeric_limits<double>;
  Location loc = program.getLoc();
  for (auto [compare, limit] : {std::pair(CmpFPredicate::ULT, Limits::min()),
                                std::pair(CmpFPredicate::UGT, Limits::max())}) {
    Value isNone =
        body().create<arith::CmpFOp>(loc, compare, number, constant(limit));
    result = body().create<arith::SelectOp>(loc, isNone, instead, result);
  }
  return result;
}

Value ScalarLowering::evaluate(OutcomeOp op) {
  SmallVector<Value> sums = llvm::map_to_vector(
      op.getSums(), [&](Value value) { return get(value); });
  Value missing = get(op.getMissing());
  Value zero = constant(0.0);
  OpBuilder &builder = body();
  Location loc = op.getLoc();
  Value outcome = zero;
  auto choose = [&](Value condition, Outcome chosen) {
    outcome = builder.create<arith::SelectOp>(
        loc, condition, constant(double(chosen)), outcome);
  };
  if (op.getNonfinite() != Nonfinite::apply) {
    for (Value each : sums) {
      // x - x is 0 for a finite x, and nan otherwise.
      Value rest = builder.create<arith::SubFOp>(loc, each, each);
      choose(builder.create<arith::CmpFOp>(loc, CmpFPredicate::UNE, rest, zero),
             getNonfiniteOutcome(op.getNonfinite()));
    }
  }
  if (op.getTokens())
    outcome = replaceUnlessDivisor(get(op.getTokens()),
                                   constant(double(Outcome::refused_no_tokens)),
                                   outcome);
  choose(builder.create<arith::CmpFOp>(loc, CmpFPredicate::UNE, missing, zero),
         Outcome::refused_missing_gradient);
  if (!op.getBackwards())
    return outcome;
  // n * sum(a^2) = (sum a)^2 exactly if all ranks have the same count a.
  Value sum = get(op.getBackwards());
  Value ranks = constant(op.getRanks());
  Value left = builder.create<arith::MulFOp>(loc, ranks, get(op.getSquared()));
  Value right = builder.create<arith::MulFOp>(loc, sum, sum);
  choose(builder.create<arith::CmpFOp>(loc, CmpFPredicate::UNE, left, right),
         Outcome::refused_unequal_backwards);
  return outcome;
}

Value ScalarLowering::evaluate(GroupOutcomeOp op) {
  Value outcome = get(op.getOutcome()), delivered = get(op.getDelivered());
  Location loc = op.getLoc();
  Value zero = constant(0.0);
  Value isAbsent =
      body().create<arith::CmpFOp>(loc, CmpFPredicate::OEQ, delivered, zero);
  Value isApplied =
      body().create<arith::CmpFOp>(loc, CmpFPredicate::OEQ, outcome, zero);
  Value isSkipped = body().create<arith::AndIOp>(loc, isAbsent, isApplied);
  return body().create<arith::SelectOp>(loc, isSkipped, constant(1.0), outcome);
}

void ScalarLowering::defineCopy(Value result, Slot slot) {
  define(result, load(slot));
}

void ScalarLowering::defineSum(Value result, ArrayRef<Slot> partials) {
  define(result, addAll(partials, result.getLoc()));
}

Value ScalarLowering::addAll(ArrayRef<Slot> partials, Location loc) {
  if (partials.size() == 1)
    return load(partials.front());
  size_t half = (partials.size() + 1) / 2;
  Value first = addAll(partials.take_front(half), loc);
  Value second = addAll(partials.drop_front(half), loc);
  return body().create<arith::AddFOp>(loc, first, second);
}

void ScalarLowering::defineSquare(Value result, Slot slot) {
  Value number = load(slot);
  define(result, body().create<arith::MulFOp>(result.getLoc(), number, number));
}

bool ScalarLowering::lower(Operation *op) {
  Location loc = op->getLoc();
  if (auto factor = dyn_cast<FactorOp>(op)) {
    define(factor.getFactor(), evaluate(factor));
  } else if (auto constantOp = dyn_cast<ConstantOp>(op)) {
    define(constantOp.getResult(),
           constant(constantOp.getValue().convertToDouble()));
  } else if (auto scale = dyn_cast<ScaleOp>(op)) {
    if (!cast<ValueType>(scale.getInput().getType()).isScalar())
      return false;
    Value lhs = get(scale.getInput());
    Value rhs = get(scale.getFactor());
    define(scale.getOutput(), body().create<arith::MulFOp>(loc, lhs, rhs));
  } else if (auto add = dyn_cast<AddOp>(op)) {
    if (!cast<ValueType>(add.getSum().getType()).isScalar())
      return false;
    Value lhs = get(add.getLhs());
    Value rhs = get(add.getRhs());
    define(add.getSum(), body().create<arith::AddFOp>(loc, lhs, rhs));
  } else if (auto root = dyn_cast<SqrtOp>(op)) {
    Value input = get(root.getInput());
    define(root.getOutput(), body().create<math::SqrtOp>(loc, input));
  } else if (auto clip = dyn_cast<ClipCoefficientOp>(op)) {
    Value norm = get(clip.getNorm());
    Value max = clip.getMax()
                    ? get(clip.getMax())
                    : constant(clip.getConstantMax()->convertToDouble());
    Value epsilon = constant(clip.getEpsilon().convertToDouble());
    Value one = constant(1.0);
    Value shifted = body().create<arith::AddFOp>(loc, norm, epsilon);
    Value ratio = body().create<arith::DivFOp>(loc, max, shifted);
    define(clip.getCoefficient(),
           body().create<arith::MinimumFOp>(loc, one, ratio));
  } else if (auto own = dyn_cast<GroupOutcomeOp>(op)) {
    define(own.getOwn(), evaluate(own));
  } else if (auto outcome = dyn_cast<OutcomeOp>(op)) {
    define(outcome.getOutcome(), evaluate(outcome));
  } else {
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

SmallVector<Value> ScalarLowering::loadAll(Slot first, size_t count) {
  SmallVector<Value> numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(
        load({first.slots, first.index + static_cast<int64_t>(i)}));
  return numbers;
}

SmallVector<Value> ScalarLowering::inlineBody(Block &block,
                                              ValueRange arguments) {
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator())
    body().clone(inner, mapping);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

void ScalarLowering::lowerPrepare(PrepareOp op, OptimizerOp optimizer,
                                  Slot counters) {
  size_t numCounters = optimizer.getCounterNames().size();
  SmallVector<Value> arguments = llvm::map_to_vector(
      op.getHyper(), [&](Value value) { return get(value); });
  SmallVector<Value> old = loadAll(counters, numCounters);
  keepCounters(old, counters);
  llvm::append_range(arguments, old);
  Value outcome = get(op.getOutcome());
  SmallVector<Value> made =
      inlineBody(optimizer.getPrepare().front(), arguments);

  // Counters advance on applied steps only.
  Value applied = body().create<arith::CmpFOp>(op.getLoc(), CmpFPredicate::OEQ,
                                               outcome, constant(0.0));
  for (auto [i, number] : llvm::enumerate(made)) {
    if (i >= numCounters) {
      define(op.getScalars()[i - numCounters], number);
      continue;
    }
    Value next =
        body().create<arith::SelectOp>(op.getLoc(), applied, number, old[i]);
    storeNumber(next, {counters.slots, static_cast<int64_t>(i)});
  }
}

void ScalarLowering::lowerReadSchedule(Value result, ScheduleOp schedule,
                                       Slot counters) {
  SmallVector<Value> arguments =
      loadAll(counters, schedule.getCounterNames().size());
  define(result, inlineBody(schedule.getValue().front(), arguments).front());
}

void ScalarLowering::lowerAdvance(Value outcome, CounterRule rule,
                                  Slot counters) {
  Location loc = rule.getLoc();
  Value decided = get(outcome);
  SmallVector<Value> old = loadAll(counters, rule.getCounterNames().size());
  keepCounters(old, counters);
  SmallVector<Value> next = old;
  // The counters after a step that was skipped, and after one that was applied.
  for (bool isSkipped : {true, false}) {
    SmallVector<Value> arguments{
        body().create<arith::ConstantOp>(loc, body().getBoolAttr(isSkipped))};
    llvm::append_range(arguments, old);
    SmallVector<Value> made = inlineBody(rule.getRule(), arguments);
    if (isa<LossScaleOp>(rule))
      made[0] = replaceUnlessDivisor(made[0], old[0], made[0]);
    Value isThis = body().create<arith::CmpFOp>(
        loc, CmpFPredicate::OEQ, decided, constant(isSkipped ? 1.0 : 0.0));
    for (auto [number, other] : llvm::zip_equal(next, made))
      number = body().create<arith::SelectOp>(loc, isThis, other, number);
  }
  for (auto [i, number] : llvm::enumerate(next))
    storeNumber(number, {counters.slots, static_cast<int64_t>(i)});
}
