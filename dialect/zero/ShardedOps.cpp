//===- ShardedOps.cpp - Rules of the sharded phase ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zero/StorageTypes.h"
#include "dialect/zero/Suggest.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace zero;

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Moves |type| over each of |axes| from placement |from| to |to|; emits an
/// error at |location| if it is not |from| there.
static FailureOr<ValueType> moveAxes(std::optional<Location> location,
                                     StringRef op, ValueType type,
                                     ArrayAttr axes, PlacementKind from,
                                     PlacementKind to) {
  if (axes.empty()) {
    (void)emitOptionalError(location, "'", op, "' op needs an axis");
    return failure();
  }
  for (auto axis : axes.getAsRange<StringAttr>()) {
    AxisPlacement placement = type.getPlacement(axis);
    if (placement.kind != from) {
      (void)emitOptionalError(location, "'", op, "' op operand must be ",
                              stringifyPlacementKind(from), " over '",
                              axis.getValue(), "', got ", type);
      return failure();
    }
    // Types cannot express these results (value_c5, value_c8).
    bool isTime = axis.getValue() == kMicroAxis;
    if (to == PlacementKind::Sharded &&
        (isTime || !type.getCoordinates(axis).empty())) {
      (void)emitOptionalError(
          location, "'", op, "' op operand cannot be sharded over '",
          axis.getValue(), "', ",
          isTime ? "the axis of time" : "of which it is on some coordinates",
          ", got ", type);
      return failure();
    }
    placement.kind = to;
    placement.dim =
        to == PlacementKind::Sharded ? type.getShape().size() - 1 : 0;
    type = type.withPlacement(placement);
  }
  return type;
}

static LogicalResult inferCollective(std::optional<Location> location,
                                     StringRef op, Type input, ArrayAttr axes,
                                     PlacementKind from, PlacementKind to,
                                     SmallVectorImpl<Type> &inferred) {
  // collective_c1
  if (cast<ValueType>(input).isOnHost())
    return emitOptionalError(location, "'", op,
                             "' op operand must be on the device, got ", input,
                             "; zero.transfer it first");
  FailureOr<ValueType> type =
      moveAxes(location, op, cast<ValueType>(input), axes, from, to);
  if (failed(type))
    return failure();
  inferred.push_back(*type);
  return success();
}

LogicalResult AllReduceOp::verify() {
  return verifyReduceDtype(*this, getInput(), getReduceDtype());
}

LogicalResult ReduceScatterOp::verify() {
  return verifyReduceDtype(*this, getInput(), getReduceDtype());
}

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &inferred) {
  // all_reduce_c1
  return inferCollective(location, getOperationName(),
                         adaptor.getInput().getType(), adaptor.getAxes(),
                         PlacementKind::Partial, PlacementKind::Replicated,
                         inferred);
}

LogicalResult ReduceScatterOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &inferred) {
  // reduce_scatter_c2
  auto type = cast<ValueType>(adaptor.getInput().getType());
  if (type.isScalar() || !type.getAxesOfDim(type.getShape().size() - 1).empty())
    return emitOptionalError(location, "'", getOperationName(),
                             "' op operand must have a last dimension that is "
                             "not sharded, got ",
                             type);
  // reduce_scatter_c1
  return inferCollective(location, getOperationName(), type, adaptor.getAxes(),
                         PlacementKind::Partial, PlacementKind::Sharded,
                         inferred);
}

LogicalResult AllGatherOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &inferred) {
  // all_gather_c1
  auto type = cast<ValueType>(adaptor.getInput().getType());
  SmallVector<StringAttr> axes(adaptor.getAxes().getAsRange<StringAttr>());
  llvm::sort(axes, [](StringAttr a, StringAttr b) {
    return a.getValue() < b.getValue();
  });
  if (type.isScalar() || type.getAxesOfDim(type.getShape().size() - 1) != axes)
    return emitOptionalError(location, "'", getOperationName(),
                             "' op axes must be those that shard the last "
                             "dimension, got ",
                             type);
  return inferCollective(location, getOperationName(), type, adaptor.getAxes(),
                         PlacementKind::Sharded, PlacementKind::Replicated,
                         inferred);
}

//===----------------------------------------------------------------------===//
// Update
//===----------------------------------------------------------------------===//

LogicalResult PrepareOp::verify() {
  // prepare_c3
  if (failed(verifyFinal(*this, getHyper())))
    return failure();
  return verifyFinal(*this, getOutcome());
}

LogicalResult PrepareOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // prepare_c1
  if (!symbols.lookupNearestSymbolFrom<GroupOp>(*this, getGroupAttr()))
    return emitOpError() << "parameter group " << getGroupAttr()
                         << " is not a zero.group of this module"
                         << suggest<GroupOp>(*this, getGroupAttr());
  auto optimizer =
      symbols.lookupNearestSymbolFrom<OptimizerOp>(*this, getOptimizerAttr());
  if (!optimizer)
    return emitOpError() << "optimizer " << getOptimizerAttr()
                         << " is not a zero.optimizer of this module"
                         << suggest<OptimizerOp>(*this, getOptimizerAttr());
  // prepare_c2
  if (optimizer.getHyperNames().size() != getHyper().size() ||
      optimizer.getNumScalars() != getNumResults())
    return emitOpError() << "optimizer " << getOptimizerAttr() << " takes "
                         << countOf(optimizer.getHyperNames().size(),
                                    "hyperparameter")
                         << " and yields "
                         << countOf(optimizer.getNumScalars(), "scalar")
                         << ", got " << getHyper().size() << " and "
                         << getNumResults();
  return success();
}

LogicalResult PrepareOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &inferred) {
  // prepare_c4
  constexpr uint64_t kMostScalars = 4096; // what a kernel takes
  if (adaptor.getNumScalars() > kMostScalars)
    return emitOptionalError(location, "'", getOperationName(), "' op yields ",
                             int64_t(adaptor.getNumScalars()),
                             " scalars, expected 0 to ", kMostScalars);
  inferred.append(adaptor.getNumScalars(), getScalarType(context));
  return success();
}

LogicalResult UpdateBucketOp::verify() {
  // update_bucket_c2
  if (failed(verifyReduced(*this, getGradient())))
    return failure();
  // update_bucket_c4
  if (getOutcomes().empty())
    return emitOpError() << "has no outcome";
  if (failed(verifyFinal(*this, getOutcomes())))
    return failure();
  return verifyFinal(*this, getRows());
}

LogicalResult UpdateBucketOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // update_bucket_c1
  auto bucket =
      symbols.lookupNearestSymbolFrom<BucketOp>(*this, getBucketAttr());
  if (!bucket)
    return emitOpError() << "bucket " << getBucketAttr()
                         << " is not a zero.bucket of this module"
                         << suggest<BucketOp>(*this, getBucketAttr());
  auto optimizer =
      symbols.lookupNearestSymbolFrom<OptimizerOp>(*this, getOptimizerAttr());
  if (!optimizer)
    return emitOpError() << "optimizer " << getOptimizerAttr()
                         << " is not a zero.optimizer of this module"
                         << suggest<OptimizerOp>(*this, getOptimizerAttr());
  // update_bucket_c2; over further axes the last dimension may be sharded
  auto gradient = cast<ValueType>(getGradient().getType());
  ValueType bucketType = bucket.getValueType();
  if (gradient.getShape() != bucket.getShape())
    return emitOpError() << "gradient must have the shape of bucket "
                         << getBucketAttr() << ", got " << gradient;
  if (!gradient.hasRowsOf(bucketType))
    return emitOpError() << "gradient must be sharded where bucket "
                         << getBucketAttr() << " is, and on its stages, "
                         << bucketType << ", got " << gradient;
  // update_bucket_c3
  if (getRowOf().size() != bucket.getMembers().size())
    return emitOpError() << "bucket " << getBucketAttr() << " has "
                         << countOf(bucket.getMembers().size(), "member")
                         << ", got " << countOf(getRowOf().size(), "row");
  unsigned width = optimizer.getNumScalars();
  auto numOutcomes = static_cast<int64_t>(getOutcomes().size());
  int64_t numRows = width ? getRows().size() / width : numOutcomes;
  for (int64_t row : getRowOf())
    if (row < 0 || row >= numRows)
      return emitOpError() << "row " << row << " is out of range, got "
                           << countOf(numRows, "row") << " of "
                           << countOf(width, "scalar");
  // update_bucket_c4
  if (numOutcomes != 1 && numOutcomes != numRows)
    return emitOpError() << "has " << countOf(numOutcomes, "outcome")
                         << ", expected 1 or one for each of "
                         << countOf(numRows, "row");
  return success();
}

LogicalResult UpdateBucketOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &inferred) {
  // update_bucket_c5
  if (!isStorageType(adaptor.getParameterType()))
    return emitOptionalError(location, "'", getOperationName(),
                             "' op parameters must be ", listStorageTypes(),
                             ", got ", adaptor.getParameterType());
  inferred.push_back(cast<ValueType>(adaptor.getGradient().getType())
                         .withElementType(adaptor.getParameterType()));
  return success();
}

LogicalResult AssignOp::verify() {
  // assign_c1
  return verifyReduced(*this, getValue());
}

LogicalResult AssignOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto bucket =
      symbols.lookupNearestSymbolFrom<BucketOp>(*this, getBucketAttr());
  if (!bucket || bucket.getMembers().empty())
    return emitOpError() << "bucket " << getBucketAttr()
                         << " is not a zero.bucket with members";
  // assign_c2
  auto member = symbols.lookupNearestSymbolFrom<ParameterOp>(
      *this, cast<FlatSymbolRefAttr>(bucket.getMembers()[0]));
  auto type = cast<ValueType>(getValue().getType());
  if (type.getShape() != bucket.getShape() ||
      (member && member.getDtype() != type.getElementType()))
    return emitOpError() << "value must have the shape of bucket "
                         << getBucketAttr()
                         << " and its members' storage type, got " << type;
  // assign_c3
  bool isSlice = bucket.getUnit() &&
                 !type.getAxesOfDim(type.getShape().size() - 1).empty();
  if (type.isOnHost() && !isSlice)
    return emitOpError() << "value must be on the device, got " << type
                         << "; zero.transfer it first";
  // assign_c1
  bool isPlaced = bucket.getUnit() ? type.hasRowsOf(bucket.getValueType())
                                   : type.hasPlacementOf(bucket.getValueType());
  if (!isPlaced)
    return emitOpError() << "value must be placed as bucket " << getBucketAttr()
                         << ", so that every replica receives it: expected "
                         << bucket.getValueType() << ", got " << type;
  return success();
}
