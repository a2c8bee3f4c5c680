//===- ScalarOps.cpp - Rules of statistics, factors, the outcome ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace zero;

/// Checks that the exponents of |scale|, the scale of a result, are in range.
static LogicalResult checkExponents(std::optional<Location> location,
                                    StringRef op, ArrayRef<ScaleFactor> scale) {
  for (const ScaleFactor &factor : scale)
    if (factor.exponent < -kMaxExponent || factor.exponent > kMaxExponent)
      return emitOptionalError(
          location, "'", op, "' op result would have scale (", toString(scale),
          "), expected exponents of -", kMaxExponent, " to ", kMaxExponent);
  return success();
}

//===----------------------------------------------------------------------===//
// Linear arithmetic
//===----------------------------------------------------------------------===//

LogicalResult AddOp::verify() {
  auto lhs = cast<ValueType>(getLhs().getType());
  auto rhs = cast<ValueType>(getRhs().getType());
  // add_c1
  if (lhs.getShape() != rhs.getShape() ||
      lhs.getElementType() != rhs.getElementType())
    return emitOpError()
           << "operands must have one shape and element type, got " << lhs
           << " and " << rhs;
  // add_c2
  if (!lhs.hasPlacementOf(rhs))
    return emitOpError()
           << "operands must have the same placement, or a side would be "
              "counted once per rank: got "
           << lhs << " and " << rhs;
  // add_c3
  if (lhs.getScale() != rhs.getScale())
    return emitOpError() << "operands must have the same scale, got ("
                         << toString(lhs.getScale()) << ") and ("
                         << toString(rhs.getScale()) << ")";
  // add_c4
  if (lhs.has(PlacementKind::Varying))
    return emitOpError() << "operands are varying and no addends, got " << lhs;
  return success();
}

LogicalResult AddOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &inferred) {
  inferred.push_back(adaptor.getLhs().getType());
  return success();
}

LogicalResult ScaleOp::verify() {
  auto factor = cast<ValueType>(getFactor().getType());
  // scale_c1
  if (!factor.getPlacements().empty())
    return emitOpError() << "factor must be replicated, got " << factor;
  if (failed(verifyEverywhere(*this, factor)))
    return failure();
  // scale_c2
  if (cast<ValueType>(getInput().getType()).has(PlacementKind::Varying))
    return emitOpError() << "operand is varying, got " << getInput().getType();
  return success();
}

LogicalResult ScaleOp::inferReturnTypes(MLIRContext *,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &inferred) {
  auto type = cast<ValueType>(adaptor.getInput().getType());
  auto factor = cast<ValueType>(adaptor.getFactor().getType());
  Scale scale = multiply(type.getScale(), factor.getScale());
  // scale_c3
  if (failed(checkExponents(location, getOperationName(), scale)))
    return failure();
  inferred.push_back(type.withScale(scale));
  return success();
}

LogicalResult FactorOp::verify() {
  // factor_c1
  auto type = cast<ValueType>(getFactor().getType());
  if (type.isScaledBy(kTokens) != bool(getTokens()))
    return emitOpError() << (getTokens()
                                 ? "has tokens and no scale by them"
                                 : "needs the number of tokens as operand");
  if (type.isScaledBy(kLossScale) != bool(getLossScale()))
    return emitOpError() << (getLossScale()
                                 ? "has a loss scale and none in its "
                                   "monomial"
                                 : "needs the loss scale as operand");
  return verifyFinal(*this, getOperands());
}

LogicalResult FactorOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // factor_c2
  auto step = (*this)->getParentOfType<StepOp>();
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(step, step.getMeshAttr());
  if (!mesh)
    return success(); // step_c1 says so
  return verifySymbols(*this, "factor", getScaleAttr(), step, mesh);
}

LogicalResult FactorOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &inferred) {
  inferred.push_back(
      getScalarType(context).withScale(adaptor.getScale().getFactors()));
  return success();
}

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location>, Adaptor,
                                           SmallVectorImpl<Type> &inferred) {
  inferred.push_back(getScalarType(context));
  return success();
}

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

LogicalResult SumSquaresOp::verify() {
  // sum_squares_c1
  if (failed(verifyNotPartial(*this, getInputs())))
    return failure();
  // sum_squares_c2
  auto first = cast<ValueType>(getInputs().front().getType());
  for (Type input : getInputs().getTypes()) {
    auto type = cast<ValueType>(input);
    if (!type.hasPlacementOf(first) || type.getScale() != first.getScale())
      return emitOpError() << "operands must have the same placement and scale,"
                              " got "
                           << first << " and " << type;
  }
  return success();
}

LogicalResult SumSquaresOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &inferred) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(location, "'", getOperationName(),
                             "' op needs an operand");
  auto input = cast<ValueType>(adaptor.getInputs().front().getType());
  // sum_squares_c3
  Scale scale = power(input.getScale(), 2);
  if (failed(checkExponents(location, getOperationName(), scale)))
    return failure();
  SmallVector<AxisPlacement> placements;
  for (StringAttr axis : input.getAxes(PlacementKind::Sharded))
    placements.push_back({axis, PlacementKind::Partial});
  inferred.push_back(ValueType::getSorted(
      context, {}, Float64Type::get(context), placements,
      SmallVector<AxisCoordinate>(input.getPresent()), scale));
  return success();
}

LogicalResult
ArrivalCountOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                 Adaptor adaptor,
                                 SmallVectorImpl<Type> &inferred) {
  ValueType type = getScalarType(context);
  for (auto axis : adaptor.getAxes().getAsRange<StringAttr>())
    type = type.withPlacement({axis, PlacementKind::Partial});
  inferred.append(3, type);
  return success();
}

LogicalResult
DeliveredCountOp::inferReturnTypes(MLIRContext *context,
                                   std::optional<Location>, Adaptor adaptor,
                                   SmallVectorImpl<Type> &inferred) {
  ValueType type = getScalarType(context);
  for (auto axis : adaptor.getAxes().getAsRange<StringAttr>())
    type = type.withPlacement({axis, PlacementKind::Partial});
  inferred.append(adaptor.getParameters().size(), type);
  return success();
}

LogicalResult
DeliveredCountOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // delivered_count_c1
  if (getParameters().empty())
    return emitOpError() << "counts the gradients of no parameter";
  llvm::DenseSet<Attribute> members, seen;
  for (auto bucket : (*this)->getParentOfType<ModuleOp>().getOps<BucketOp>())
    members.insert(bucket.getMembers().begin(), bucket.getMembers().end());
  for (Attribute parameter : getParameters()) {
    if (!members.contains(parameter))
      return emitOpError() << "parameter " << parameter
                           << " is no member of a zero.bucket of this module";
    if (!seen.insert(parameter).second)
      return emitOpError() << "parameter " << parameter << " is listed twice";
  }
  return success();
}

LogicalResult
GroupOutcomeOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                 Adaptor, SmallVectorImpl<Type> &inferred) {
  inferred.push_back(getScalarType(context));
  return success();
}

LogicalResult CountReplicatedOnceOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &inferred) {
  auto type = cast<ValueType>(adaptor.getInput().getType());
  if (adaptor.getAxes().empty())
    return emitOptionalError(location, "'", getOperationName(),
                             "' op needs an axis");
  for (auto axis : adaptor.getAxes().getAsRange<StringAttr>()) {
    // count_replicated_once_c1
    AxisPlacement placement = type.getPlacement(axis);
    if (placement.kind != PlacementKind::Replicated || placement.reduced)
      return emitOptionalError(location, "'", getOperationName(),
                               "' op operand must be replicated over '",
                               axis.getValue(), "', got ", type);
    type =
        type.withoutStages(axis).withPlacement({axis, PlacementKind::Partial});
  }
  inferred.push_back(type);
  return success();
}

LogicalResult StackOp::verify() {
  // stack_c1
  auto first = cast<ValueType>(getScalars().front().getType());
  for (Type scalar : getScalars().getTypes())
    if (!cast<ValueType>(scalar).hasPlacementOf(first))
      return emitOpError() << "operands must have the same placement, got "
                           << first << " and " << scalar;
  return success();
}

LogicalResult StackOp::inferReturnTypes(MLIRContext *,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &inferred) {
  if (adaptor.getScalars().empty())
    return emitOptionalError(location, "'", getOperationName(),
                             "' op needs an operand");
  auto first = cast<ValueType>(adaptor.getScalars().front().getType());
  inferred.push_back(
      first.withShape({static_cast<int64_t>(adaptor.getScalars().size())})
          .withScale({}));
  return success();
}

LogicalResult UnstackOp::verify() {
  // unstack_c1
  auto type = cast<ValueType>(getVector().getType());
  if (!type.getElementType().isF64() ||
      type.getShape()[0] != static_cast<int64_t>(getScales().size()))
    return emitOpError() << "needs an f64 vector with one element per scale, "
                            "got "
                         << type << " and "
                         << countOf(getScales().size(), "scale");
  return success();
}

LogicalResult UnstackOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &inferred) {
  auto vector = cast<ValueType>(adaptor.getVector().getType());
  // unstack_c2
  if (vector.getShape().size() != 1 || vector.has(PlacementKind::Sharded))
    return emitOptionalError(location, "'", getOperationName(),
                             "' op needs a vector that is not sharded, got ",
                             vector);
  // Scalars are in no space.
  ValueType type = vector.withSpace(MemorySpace::device);
  for (Attribute scale : adaptor.getScales()) {
    auto factors = dyn_cast<ScaleAttr>(scale);
    if (!factors)
      return emitOptionalError(location, "'", getOperationName(),
                               "' op expected #zero.scale, got ", scale);
    inferred.push_back(type.withShape({}).withScale(factors.getFactors()));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Scalars that are no linear function
//===----------------------------------------------------------------------===//

LogicalResult SqrtOp::verify() {
  // sqrt_c1
  auto type = cast<ValueType>(getInput().getType());
  if (!type.getPlacements().empty())
    return emitOpError() << "operand must be replicated, got " << type;
  return verifyEverywhere(*this, type);
}

LogicalResult SqrtOp::inferReturnTypes(MLIRContext *,
                                       std::optional<Location> location,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &inferred) {
  auto type = cast<ValueType>(adaptor.getInput().getType());
  // sqrt_c2
  FailureOr<Scale> scale = root(type.getScale());
  if (failed(scale))
    return emitOptionalError(location, "'", getOperationName(),
                             "' op scale must have even exponents, got (",
                             toString(type.getScale()), ")");
  inferred.push_back(type.withScale(*scale));
  return success();
}

LogicalResult
ClipCoefficientOp::inferReturnTypes(MLIRContext *context,
                                    std::optional<Location>, Adaptor,
                                    SmallVectorImpl<Type> &inferred) {
  inferred.push_back(getScalarType(context));
  return success();
}

LogicalResult OutcomeOp::verify() {
  // outcome_c2; groups of single operands are not counted by their definition.
  ArrayRef<int32_t> sizes = getProperties().operandSegmentSizes;
  if (sizes[1] != 1 || sizes[2] > 1 || sizes[2] != sizes[3] || sizes[4] > 1)
    return emitOpError() << "needs missing, backwards with squared or neither, "
                            "and tokens at most, got "
                         << sizes[1] << ", " << sizes[2] << ", " << sizes[3]
                         << " and " << sizes[4] << " of them";
  // outcome_c1
  for (Value operand : getOperands()) {
    auto type = cast<ValueType>(operand.getType());
    if (!type.getPlacements().empty())
      return emitOpError() << "operand must be replicated, got " << type;
    if (failed(verifyEverywhere(*this, type)))
      return failure();
  }
  // outcome_c3
  if (getSums().empty() && getNonfinite() != Nonfinite::apply)
    return emitOpError() << "needs the sums of squares of the gradients to see "
                            "whether they are finite, unless it is 'nonfinite "
                            "apply'";
  if (getRanks() < 1)
    return emitOpError() << "ranks must be at least 1, got " << getRanks();
  return success();
}

LogicalResult OutcomeOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location>, Adaptor,
                                          SmallVectorImpl<Type> &inferred) {
  inferred.push_back(getScalarType(context));
  return success();
}
