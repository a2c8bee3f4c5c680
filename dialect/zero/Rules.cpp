//===- Rules.cpp - Checks shared by several ops ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Rules.h"

#include "dialect/zero/StorageTypes.h"
#include "dialect/zero/Suggest.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace zero;

ValueType zero::getScalarType(MLIRContext *context) {
  return ValueType::getSorted(context, {}, Float64Type::get(context));
}

LogicalResult zero::verifyReduceDtype(Operation *op, ValueRange values,
                                      std::optional<Type> reduceDtype) {
  if (!reduceDtype)
    return success();
  for (Value value : values) {
    auto type = cast<ValueType>(value.getType());
    if (type.isScalar() || value.getDefiningOp<StackOp>())
      return op->emitOpError() << "operand is of scalars, which travel as they "
                                  "are; leave 'reduce_dtype' out";
    if (!holdsEveryNumber(type.getElementType(), *reduceDtype))
      return op->emitOpError()
             << "operand is of " << type.getElementType()
             << ", which does not hold every number of reduce dtype "
             << *reduceDtype;
  }
  return success();
}

static LogicalResult verifyUnscaled(Operation *op, ValueType type) {
  if (type.isScaled())
    return op->emitOpError() << "operand is still scaled by ("
                             << toString(type.getScale()) << ") in " << type;
  return success();
}

LogicalResult zero::verifyEverywhere(Operation *op, ValueType type) {
  if (type.getPresent().empty())
    return success();
  return op->emitOpError()
         << "operand must be on every rank, got " << type
         << "; zero.count_replicated_once makes a share of a sum of it";
}

LogicalResult zero::verifyFinal(Operation *op, ValueRange values) {
  for (Value value : values) {
    auto type = cast<ValueType>(value.getType());
    for (const AxisPlacement &p : type.getPlacements())
      if (p.kind != PlacementKind::Replicated)
        return op->emitOpError() << "operand must be replicated, got "
                                 << stringifyPlacementKind(p.kind) << " over '"
                                 << p.axis.getValue() << "' in " << type;
    if (failed(verifyEverywhere(op, type)) || failed(verifyUnscaled(op, type)))
      return failure();
  }
  return success();
}

LogicalResult zero::verifySymbols(Operation *op, StringRef what,
                                  ScaleAttr monomial, MeshOp mesh) {
  for (const ScaleFactor &factor : monomial.getFactors()) {
    StringRef symbol = factor.symbol.getValue();
    if (symbol == kAccumulation || symbol == kTokens || symbol == kLossScale ||
        mesh.findAxes(factor.symbol))
      continue;
    InFlightDiagnostic diag =
        op->emitOpError()
        << what << " names '" << symbol
        << "', which is neither accumulation, tokens, loss_scale "
           "nor an axis of mesh @"
        << mesh.getSymName();
    diag.attachNote(mesh.getLoc()) << "axes are declared here";
    return diag;
  }
  return success();
}

LogicalResult zero::verifySymbols(Operation *op, StringRef what,
                                  ScaleAttr monomial, StepOp step,
                                  MeshOp mesh) {
  if (getExponent(monomial.getFactors(), kLossScale) == 0 ||
      step.getLossScaleAttr())
    return verifySymbols(op, what, monomial, mesh);
  InFlightDiagnostic diag = op->emitOpError()
                            << what << " names '" << kLossScale
                            << "', and the step has none";
  diag.attachNote(step.getLoc())
      << "write 'loss_scale @name' after normalize(...)";
  return diag;
}

LogicalResult zero::verifyNames(Operation *op, ArrayRef<ArrayAttr> lists) {
  llvm::StringSet<> names;
  for (ArrayAttr list : lists)
    for (auto name : list.getAsRange<StringAttr>()) {
      if (name.empty())
        return op->emitOpError()
               << "has an empty name; callers and checkpoints find values by "
                  "their names";
      if (!names.insert(name).second)
        return op->emitOpError() << "name " << name << " is used twice";
    }
  return success();
}

LogicalResult zero::verifyFiniteF64(Operation *op, StringRef what,
                                    NamedAttribute number) {
  auto value = dyn_cast<FloatAttr>(number.getValue());
  if (!value || !value.getType().isF64())
    return op->emitOpError() << what << " " << number.getName()
                             << " must be an f64, got " << number.getValue();
  return verifyFinite(op, what,
                      ArrayAttr::get(op->getContext(), number.getName()),
                      value.getValueAsDouble());
}

LogicalResult zero::verifyFinite(Operation *op, StringRef what, ArrayAttr names,
                                 ArrayRef<double> numbers) {
  for (auto [name, number] : llvm::zip_equal(names, numbers))
    if (!std::isfinite(number))
      return op->emitOpError()
             << what << " " << name << " must be finite, got " << number;
  return success();
}

LogicalResult zero::verifySquare(Operation *op, ArrayRef<ScaleFactor> scale,
                                 MeshOp mesh) {
  // The logarithms of what multiplies and divides a gradient.
  double multiplies = 0, divides = 0;
  for (const ScaleFactor &factor : scale) {
    int64_t exponent = factor.exponent;
    if (exponent < -kMaxGradientExponent || exponent > kMaxGradientExponent)
      return op->emitOpError()
             << "has gradients of scale (" << toString(scale)
             << "), expected exponents of -" << kMaxGradientExponent << " to "
             << kMaxGradientExponent
             << ", since a norm squares gradients; lower the exponent of '"
             << factor.symbol.getValue() << "' in normalize or prescaled";
    std::optional<int64_t> size = mesh.getAxisSize(factor.symbol);
    double logarithm = size ? std::log2(double(*size)) : 0;
    if (exponent < 0 && factor.symbol.getValue() == kAccumulation)
      logarithm = kBackwardsExponent;
    (exponent < 0 ? multiplies : divides) +=
        double(std::abs(exponent)) * logarithm;
  }
  for (auto [verb, logarithm] :
       {std::pair("multiplies", multiplies), std::pair("divides", divides)})
    if (logarithm > kFactorExponent)
      return op->emitOpError()
             << "has gradients of scale (" << toString(scale) << "), which "
             << verb << " them by up to 2^" << int64_t(std::ceil(logarithm))
             << " on mesh @" << mesh.getSymName() << ", expected at most 2^"
             << kFactorExponent
             << ", since a norm squares them; lower an exponent of normalize "
                "or prescaled";
  return success();
}

LogicalResult zero::verifyTrained(Operation *op, ParameterOp parameter) {
  if (!parameter.getFrozen())
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "names @" << parameter.getSymName()
                            << ", which is frozen: no gradient of it arrives";
  diag.attachNote(parameter.getLoc())
      << "leave it out of the step, or do not declare it 'frozen' here";
  return diag;
}

LogicalResult zero::verifyReduced(Operation *op, ValueRange values) {
  for (Value value : values) {
    auto type = cast<ValueType>(value.getType());
    for (const AxisPlacement &p : type.getPlacements())
      if (p.reduced || (p.kind != PlacementKind::Replicated &&
                        p.kind != PlacementKind::Sharded))
        return op->emitOpError()
               << "operand must be reduced, got "
               << (p.reduced ? "reduced" : stringifyPlacementKind(p.kind))
               << " over '" << p.axis.getValue() << "' in " << type
               << "; zero.reduce it first";
    if (failed(verifyUnscaled(op, type)))
      return failure();
  }
  return success();
}

LogicalResult zero::verifyNotPartial(Operation *op, ValueRange values) {
  for (Value value : values) {
    auto type = cast<ValueType>(value.getType());
    for (const AxisPlacement &p : type.getPlacements())
      if (p.kind != PlacementKind::Replicated &&
          p.kind != PlacementKind::Sharded)
        return op->emitOpError()
               << "operand must not be " << stringifyPlacementKind(p.kind)
               << " over '" << p.axis.getValue() << "', got " << type;
  }
  return success();
}

LogicalResult
zero::verifyEachGradientIsUpdatedOnce(StepOp step,
                                      SymbolTableCollection &symbols) {
  // Maps a symbol to the op that updates it, or to null. The map is in the
  // order of arrival, so that diagnostics have one order.
  llvm::MapVector<Attribute, Operation *> updates;
  step.walk([&](BackwardOp backward) {
    for (Attribute source : backward.getSources())
      updates.insert({source, nullptr});
  });
  auto recordUpdate = [&](Operation *op, Attribute symbol) -> LogicalResult {
    auto it = updates.find(symbol);
    if (it == updates.end())
      return op->emitOpError()
             << "updates " << symbol << ", whose gradient never arrives";
    if (it->second) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "updates " << symbol << " a second time";
      diag.attachNote(it->second->getLoc()) << "first updated here";
      return diag;
    }
    it->second = op;
    return success();
  };
  WalkResult result = step.walk([&](Operation *op) {
    if (auto update = dyn_cast<UpdateOp>(op)) {
      auto group =
          symbols.lookupNearestSymbolFrom<GroupOp>(op, update.getGroupAttr());
      if (!group)
        return WalkResult::advance(); // update_c1 says so
      for (Attribute member : group.getMembers())
        if (failed(recordUpdate(op, member)))
          return WalkResult::interrupt();
    } else if (auto update = dyn_cast<UpdateBucketOp>(op)) {
      if (failed(recordUpdate(op, update.getBucketAttr())))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (auto [symbol, update] : updates)
    if (!update)
      return step.emitOpError()
             << "gradient of " << symbol << " arrives and is never updated";
  return success();
}
