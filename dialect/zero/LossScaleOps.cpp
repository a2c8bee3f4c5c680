//===- LossScaleOps.cpp - Rules of what losses are multiplied by ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Rules.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace zero;

LogicalResult LossScaleOp::verifyRegions() {
  // loss_scale_c1
  size_t count = getCounterNames().size();
  if (count == 0 || getCounterInitial().size() != count)
    return emitOpError() << "needs at least one counter and an initial value "
                            "of each, got "
                         << count << " and " << getCounterInitial().size();
  llvm::StringSet<> names;
  for (auto name : getCounterNames().getAsRange<StringAttr>())
    if (!names.insert(name).second)
      return emitOpError() << "name " << name << " is used twice";
  double initial = getCounterInitial().front();
  if (!std::isnormal(initial) || initial < 0)
    return emitOpError() << "must begin as a positive number that has an "
                            "inverse, got "
                         << initial;

  // loss_scale_c3
  for (Operation &op : getUpdate().front()) {
    bool isScalarMath = isa<YieldOp>(op) ||
                        isa_and_present<arith::ArithDialect, math::MathDialect>(
                            op.getDialect());
    bool isF64 = llvm::all_of(op.getResultTypes(), [](Type type) {
      return type.isF64() || type.isInteger(1);
    });
    if (isScalarMath && isF64)
      continue;
    InFlightDiagnostic diag = op.emitOpError()
                              << "is not allowed in the rule of a loss scale, "
                                 "which holds arith and math ops in f64 only";
    diag.attachNote(getLoc()) << "in the body of @" << getSymName();
    return diag;
  }

  // loss_scale_c2
  Block &update = getUpdate().front();
  if (update.empty() || !isa<YieldOp>(update.back()))
    return emitOpError() << "must end with zero.yield";
  auto areF64 = [](TypeRange types) {
    return llvm::all_of(types, [](Type type) { return type.isF64(); });
  };
  TypeRange arguments = update.getArgumentTypes();
  if (arguments.size() != 1 + count || !arguments.front().isInteger(1) ||
      !areF64(arguments.drop_front()))
    return emitOpError() << "update must take an i1 and " << count
                         << " f64, got (" << arguments << ")";
  TypeRange yielded = update.back().getOperandTypes();
  if (yielded.size() != count || !areF64(yielded))
    return emitOpError() << "update must yield " << count << " f64, got ("
                         << yielded << ")";
  return success();
}

LogicalResult ReadScaleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // read_scale_c1
  if (!symbols.lookupNearestSymbolFrom<LossScaleOp>(*this, getLossScaleAttr()))
    return emitOpError() << getLossScaleAttr()
                         << " is not a zero.loss_scale of this module";
  // read_scale_c2
  for (auto other : (*this)->getBlock()->getOps<ReadScaleOp>()) {
    if (other == *this)
      break;
    InFlightDiagnostic diag = emitOpError() << "reads a loss scale again";
    diag.attachNote(other.getLoc()) << "it was read here";
    return diag;
  }
  // read_scale_c3
  FlatSymbolRefAttr arrives = (*this)->getParentOfType<StepOp>().getLossScale();
  if (arrives != getLossScaleAttr()) {
    InFlightDiagnostic diag = emitOpError() << "reads " << getLossScaleAttr()
                                            << ", and gradients arrive with ";
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

FlatSymbolRefAttr UpdateScaleOp::getLossScale() {
  return getValue().getDefiningOp<ReadScaleOp>().getLossScaleAttr();
}

LogicalResult UpdateScaleOp::verify() {
  // update_scale_c1
  if (!getValue().getDefiningOp<ReadScaleOp>())
    return emitOpError() << "needs what zero.read_scale read";
  // update_scale_c2
  if (!cast<ValueType>(getVerdict().getType()).getPlacements().empty())
    return emitOpError() << "verdict must be replicated, got "
                         << getVerdict().getType();
  return success();
}
