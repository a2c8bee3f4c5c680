//===- CounterOps.cpp - Rules of loss scales and schedules ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Rules.h"
#include "dialect/zero/Suggest.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace zero;

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// loss_scale_c1, schedule_c1
static LogicalResult verifyCounters(CounterRule rule) {
  size_t count = rule.getCounterNames().size();
  size_t initial = rule.getCounterInitial().size();
  if (count == 0 || initial != count)
    return rule->emitOpError()
           << "needs at least one counter and an initial value of each, got "
           << count << " and " << initial;
  if (failed(verifyNames(rule, rule.getCounterNames())))
    return failure();
  return verifyFinite(rule, "counter", rule.getCounterNames(),
                      rule.getCounterInitial());
}

/// loss_scale_c3, schedule_c3
static LogicalResult verifyScalarMath(Operation *rule, Block &body) {
  for (Operation &op : body) {
    bool isScalarMath =
        isa<YieldOp, math::SqrtOp, math::FmaOp, math::AbsFOp, math::CopySignOp>(
            op) ||
        isa_and_present<arith::ArithDialect>(op.getDialect());
    bool isF64 = llvm::all_of(op.getResultTypes(), [](Type type) {
      return type.isF64() || type.isInteger(1);
    });
    if (isScalarMath && isF64)
      continue;
    InFlightDiagnostic diag =
        op.emitOpError() << "is not allowed in the body of a "
                         << rule->getName().stripDialect()
                         << ", which holds arith ops and math.sqrt, fma, absf "
                            "and copysign in f64 only";
    diag.attachNote(rule->getLoc())
        << "of @" << SymbolTable::getSymbolName(rule).getValue();
    return diag;
  }
  if (body.empty() || !isa<YieldOp>(body.back()))
    return rule->emitOpError() << "must end with zero.yield";
  return success();
}

/// loss_scale_c2, schedule_c2: |body| takes |flags| of i1 and |from| of f64.
static LogicalResult verifyTypes(Operation *rule, StringRef name, Block &body,
                                 size_t flags, size_t from, size_t to) {
  auto areF64 = [](TypeRange types) {
    return llvm::all_of(types, [](Type type) { return type.isF64(); });
  };
  TypeRange taken = body.getArgumentTypes();
  if (taken.size() != flags + from || (flags && !taken.front().isInteger(1)) ||
      !areF64(taken.drop_front(flags)))
    return rule->emitOpError()
           << name << " must take " << (flags ? "an i1 and " : "") << from
           << " f64, got (" << taken << ")";
  TypeRange yielded = body.back().getOperandTypes();
  if (yielded.size() != to || !areF64(yielded))
    return rule->emitOpError()
           << name << " must yield " << to << " f64, got (" << yielded << ")";
  return success();
}

static LogicalResult verifyRule(CounterRule rule, StringRef name) {
  size_t count = rule.getCounterNames().size();
  if (failed(verifyCounters(rule)) ||
      failed(verifyScalarMath(rule, rule.getRule())))
    return failure();
  return verifyTypes(rule, name, rule.getRule(), 1, count, count);
}

Block &LossScaleOp::getRule() { return getUpdate().front(); }

LogicalResult LossScaleOp::verifyRegions() {
  if (failed(verifyRule(*this, "update")))
    return failure();
  // loss_scale_c1
  double initial = getCounterInitial().front();
  if (!std::isnormal(initial) || initial < 0)
    return emitOpError() << "must begin as a positive number that has an "
                            "inverse, got "
                         << initial;
  return success();
}

Block &ScheduleOp::getRule() { return getNext().front(); }

LogicalResult ScheduleOp::verifyRegions() {
  if (failed(verifyRule(*this, "next")) ||
      failed(verifyScalarMath(*this, getValue().front())))
    return failure();
  return verifyTypes(*this, "value", getValue().front(), 0,
                     getCounterNames().size(), 1);
}

//===----------------------------------------------------------------------===//
// Reading and advancing
//===----------------------------------------------------------------------===//

LogicalResult ReadScaleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // read_scale_c1
  if (!symbols.lookupNearestSymbolFrom<LossScaleOp>(*this, getLossScaleAttr()))
    return emitOpError() << getLossScaleAttr()
                         << " is not a zero.loss_scale of this module"
                         << suggest<LossScaleOp>(*this, getLossScaleAttr());
  // read_scale_c2
  for (auto other : (*this)->getBlock()->getOps<ReadScaleOp>()) {
    if (other == *this)
      break;
    InFlightDiagnostic diag = emitOpError() << "reads a loss scale again";
    diag.attachNote(other.getLoc()) << "it was read here";
    return diag;
  }
  // read_scale_c3
  FlatSymbolRefAttr arrives =
      (*this)->getParentOfType<StepOp>().getLossScaleAttr();
  if (arrives != getLossScaleAttr()) {
    InFlightDiagnostic diag = emitOpError() << "reads " << getLossScaleAttr()
                                            << ", and the step has ";
    if (arrives)
      diag << arrives;
    else
      diag << "no loss scale";
    return diag;
  }
  return success();
}

LogicalResult ReadScaleOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location>, Adaptor,
                                            SmallVectorImpl<Type> &inferred) {
  inferred.push_back(getScalarType(context));
  return success();
}

LogicalResult ReadScheduleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // read_schedule_c1
  if (!symbols.lookupNearestSymbolFrom<ScheduleOp>(*this, getScheduleAttr()))
    return emitOpError() << getScheduleAttr()
                         << " is not a zero.schedule of this module"
                         << suggest<ScheduleOp>(*this, getScheduleAttr());
  // read_schedule_c2
  for (auto other : (*this)->getBlock()->getOps<ReadScheduleOp>()) {
    if (other == *this)
      break;
    if (other.getScheduleAttr() != getScheduleAttr())
      continue;
    InFlightDiagnostic diag = emitOpError()
                              << "reads " << getScheduleAttr() << " again";
    diag.attachNote(other.getLoc()) << "it was read here";
    return diag;
  }
  return success();
}

LogicalResult
ReadScheduleOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                 Adaptor, SmallVectorImpl<Type> &inferred) {
  inferred.push_back(getScalarType(context));
  return success();
}

FlatSymbolRefAttr AdvanceOp::getRuleSymbol() {
  if (auto read = getValue().getDefiningOp<ReadScaleOp>())
    return read.getLossScaleAttr();
  if (auto read = getValue().getDefiningOp<ReadScheduleOp>())
    return read.getScheduleAttr();
  return nullptr;
}

LogicalResult AdvanceOp::verify() {
  // advance_c1
  if (!getRuleSymbol())
    return emitOpError()
           << "needs what zero.read_scale or zero.read_schedule read";
  for (auto other : (*this)->getBlock()->getOps<AdvanceOp>()) {
    if (other == *this)
      break;
    if (other.getValue() != getValue())
      continue;
    InFlightDiagnostic diag = emitOpError()
                              << "advances " << getRuleSymbol() << " again";
    diag.attachNote(other.getLoc()) << "it was advanced here";
    return diag;
  }
  // advance_c2
  auto type = cast<ValueType>(getOutcome().getType());
  if (!type.getPlacements().empty())
    return emitOpError() << "outcome must be replicated, got " << type;
  return verifyEverywhere(*this, type);
}
