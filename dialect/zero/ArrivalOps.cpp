//===- ArrivalOps.cpp - Rules of what arrives in a step -------------------===//
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
// zero.micro_batches
//===----------------------------------------------------------------------===//

/// The type of the sum over the backward passes. `reduced` axes become
/// ordinary: autograd has summed over them.
static ValueType sumOverMicro(ValueType type, Type accumulatorType) {
  auto micro = StringAttr::get(type.getContext(), kMicroAxis);
  for (AxisPlacement placement : llvm::to_vector(type.getPlacements())) {
    placement.reduced = false;
    type = type.withPlacement(placement);
  }
  return type.withPlacement({micro}).withElementType(accumulatorType);
}

void MicroBatchesOp::build(OpBuilder &, OperationState &state,
                           Type accumulatorType, Region &body) {
  state.addAttribute(getAccumulatorTypeAttrName(state.name),
                     TypeAttr::get(accumulatorType));
  for (Type yielded : body.front().getTerminator()->getOperandTypes())
    state.addTypes(sumOverMicro(cast<ValueType>(yielded), accumulatorType));
  state.addRegion()->takeBody(body);
}

ParseResult MicroBatchesOp::parse(OpAsmParser &parser, OperationState &result) {
  Type type;
  SMLoc loc = parser.getCurrentLocation();
  Region *region = result.addRegion();
  if (parser.parseKeyword("in") || parser.parseType(type))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("apart")))
    result.addAttribute(getApartAttrName(result.name),
                        parser.getBuilder().getUnitAttr());
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*region))
    return failure();
  result.addAttribute(getAccumulatorTypeAttrName(result.name),
                      TypeAttr::get(type));
  if (!region->hasOneBlock() || region->front().empty() ||
      !isa<YieldOp>(region->front().back()))
    return parser.emitError(loc) << "body must end with zero.yield";
  for (Type yielded : region->front().back().getOperandTypes()) {
    auto value = dyn_cast<ValueType>(yielded);
    if (!value)
      return parser.emitError(loc)
             << "body must yield !zero.value, got " << yielded;
    if (!isStorageType(type))
      return parser.emitError(loc) << "expected " << listStorageTypes()
                                   << " after 'in', got " << type;
    result.addTypes(sumOverMicro(value, type));
  }
  return success();
}

void MicroBatchesOp::print(OpAsmPrinter &printer) {
  printer << " in " << getAccumulatorType() << (getApart() ? " apart " : " ");
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getAccumulatorTypeAttrName(), getApartAttrName()});
  printer.printRegion(getBody());
}

LogicalResult MicroBatchesOp::verifyRegions() {
  // micro_batches_c3
  if ((*this)->getParentOfType<MicroBatchesOp>())
    return emitOpError() << "must not be nested";
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError() << "body must end with zero.yield";
  if (yield.getNumOperands() != getNumResults())
    return emitOpError() << "has " << countOf(getNumResults(), "result")
                         << " and yields "
                         << countOf(yield.getNumOperands(), "value");
  auto micro = StringAttr::get(getContext(), kMicroAxis);
  for (auto [value, sum] :
       llvm::zip_equal(yield.getValues(), getResultTypes())) {
    auto type = dyn_cast<ValueType>(value.getType());
    // micro_batches_c1
    if (!type || type.getPlacement(micro).kind != PlacementKind::Partial)
      return yield.emitOpError()
             << "yields a value that is not partial over 'micro' and would be "
                "counted once per backward pass: "
             << value.getType();
    // micro_batches_c2
    if (!holdsEveryNumber(getAccumulatorType(), type.getElementType()))
      return emitOpError() << "sums in " << getAccumulatorType()
                           << ", which does not hold every number of the "
                           << type.getElementType() << " that is yielded";
    if (sum != sumOverMicro(type, getAccumulatorType()))
      return emitOpError() << "result must be "
                           << sumOverMicro(type, getAccumulatorType())
                           << ", got " << sum;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// zero.backward
//===----------------------------------------------------------------------===//

/// The type of the arriving gradient of a parameter of type |declared|, in
/// |elementType| and with |scale|. It is partial over each axis that does not
/// shard the parameter, unless |op| says that it is replicated there.
static ValueType getExpectedArrival(BackwardOp op, ValueType declared,
                                    Type elementType, const Scale &scale,
                                    MeshOp mesh) {
  SmallVector<StringAttr> replicated;
  if (op.getReplicatedAttr())
    for (auto name : op.getReplicated()->getAsRange<StringAttr>())
      if (auto axes = mesh.findAxes(name))
        llvm::append_range(replicated, *axes);
  SmallVector<StringAttr> batch =
      op->getParentOfType<StepOp>().getBatchAxes(mesh);
  ValueType type = declared.withElementType(elementType).withScale(scale);
  SmallVector<StringAttr> axes{StringAttr::get(op.getContext(), kMicroAxis)};
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    axes.push_back(axis.getName());
  for (StringAttr axis : axes) {
    AxisPlacement placement = declared.getPlacement(axis);
    size_t stages = declared.getCoordinates(axis).size();
    // Ranks with batches of their own, or with stages, have addends.
    bool isBatch = llvm::is_contained(batch, axis);
    bool hasAddends = isBatch || stages > 1;
    if (placement.kind == PlacementKind::Sharded || (stages == 1 && isBatch))
      placement = {axis, placement.kind, placement.dim, hasAddends};
    else if (hasAddends ||
             (stages == 0 && !llvm::is_contained(replicated, axis)))
      placement = {axis, PlacementKind::Partial};
    type = type.withPlacement(placement);
  }
  return type;
}

/// backward_c3 and backward_c7: how the gradient of |source|, which is
/// |declared|, arrives over each axis.
static LogicalResult verifyArrival(BackwardOp op, FlatSymbolRefAttr source,
                                   ValueType declared, ValueType type,
                                   const Scale &scale, MeshOp mesh) {
  auto expected = [&] {
    return getExpectedArrival(op, declared, type.getElementType(), scale, mesh);
  };
  auto emitError = [&]() {
    return op.emitOpError() << "gradient of " << source;
  };
  auto micro = StringAttr::get(op.getContext(), kMicroAxis);
  if (type.getPlacement(micro).kind != PlacementKind::Partial)
    return emitError() << " must be partial over 'micro', got " << type
                       << ", expected " << expected();
  if (type.getPresent() != declared.getPresent())
    return emitError() << " must be where " << source << " is, " << declared
                       << ", got " << type << ", expected " << expected();
  for (ValueType each : {declared, type})
    for (const AxisPlacement &p : each.getPlacements())
      if (p.axis != micro && !mesh.getAxisSize(p.axis))
        return emitError() << " has a placement over '" << p.axis.getValue()
                           << "', which is no axis of mesh @"
                           << mesh.getSymName() << ", got " << each;
  SmallVector<StringAttr> replicated;
  if (op.getReplicatedAttr())
    for (auto name : op.getReplicated()->getAsRange<StringAttr>()) {
      auto axes = mesh.findAxes(name);
      if (!axes)
        return op.emitOpError()
               << "is replicated over " << name
               << ", which is no axis of mesh @" << mesh.getSymName();
      llvm::append_range(replicated, *axes);
    }
  SmallVector<StringAttr> batch =
      op->getParentOfType<StepOp>().getBatchAxes(mesh);
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    AxisPlacement arrives = type.getPlacement(axis.getName());
    AxisPlacement lives = declared.getPlacement(axis.getName());
    bool isSharded = arrives.kind == PlacementKind::Sharded;
    if (isSharded != (lives.kind == PlacementKind::Sharded) ||
        (isSharded && arrives.dim != lives.dim))
      return emitError() << " must be sharded over " << axis.getName()
                         << " as the parameter is, " << declared << ", got "
                         << type << ", expected " << expected();
    bool mayBeReplicated = llvm::is_contained(replicated, axis.getName());
    // A single coordinate has no other addends.
    bool isOnOne = declared.getCoordinates(axis.getName()).size() == 1;
    bool isReplicated = arrives.kind == PlacementKind::Replicated &&
                        (mayBeReplicated || arrives.reduced || isOnOne);
    if (!isSharded && !isReplicated && arrives.kind != PlacementKind::Partial)
      return emitError() << " must be partial over " << axis.getName()
                         << (mayBeReplicated
                                 ? ""
                                 : ", or said to be 'replicated' there")
                         << ", got " << type << ", expected " << expected();
    // backward_c7
    bool isBatch = llvm::is_contained(batch, axis.getName());
    // backward_c9
    size_t stages = declared.getCoordinates(axis.getName()).size();
    bool isExpert = stages == 1 && arrives.reduced;
    if (isBatch && stages > 0 && !isExpert) {
      InFlightDiagnostic diag = emitError();
      diag << " must be on all ranks of " << axis.getName()
           << ", whose ranks have batches of their own, or on one of them and "
              "reduced there, got "
           << type;
      if (stages == 1)
        diag << ", expected " << expected();
      return diag;
    }
    if (stages > 1 && arrives.kind != PlacementKind::Partial)
      return emitError() << " must be partial over " << axis.getName()
                         << ": each of its stages delivers an addend, got "
                         << type << ", expected " << expected();
    if (isBatch && arrives.kind != PlacementKind::Partial && !arrives.reduced)
      return emitError() << " must be partial or reduced over "
                         << axis.getName()
                         << ", whose ranks have batches of their own, got "
                         << type << ", expected " << expected();
  }
  return success();
}

/// backward_c9: |source| is on stages that |mesh| has.
static LogicalResult verifyStages(BackwardOp op, FlatSymbolRefAttr source,
                                  ValueType declared, MeshOp mesh) {
  for (const AxisCoordinate &c : declared.getPresent()) {
    std::optional<int64_t> size = mesh.getAxisSize(c.axis);
    if (size && c.coordinate < *size)
      continue;
    InFlightDiagnostic diag =
        op.emitOpError() << "gradient of " << source << " is on coordinate "
                         << c.coordinate << " of " << c.axis << ", ";
    if (size)
      diag << "which has " << *size;
    else
      diag << "which is no axis of mesh @" << mesh.getSymName();
    diag.attachNote(mesh.getLoc()) << "axes are declared here";
    return diag;
  }
  return success();
}

/// backward_c8: the sizes of axes divide the extents that they shard.
static LogicalResult verifyDivides(BackwardOp op, FlatSymbolRefAttr source,
                                   ValueType declared, MeshOp mesh,
                                   bool isBucket) {
  for (auto [dim, extent] : llvm::enumerate(declared.getShape())) {
    SmallVector<StringAttr> axes = declared.getAxesOfDim(dim);
    int64_t ranks = mesh.getNumRanks(axes);
    if (extent % ranks == 0 && (!isBucket || axes.empty() || extent == ranks))
      continue;
    InFlightDiagnostic diag = op.emitOpError()
                              << (isBucket ? "bucket " : "parameter ") << source
                              << " has " << countOf(extent, "element")
                              << " in dimension " << dim << ", sharded over "
                              << countOf(ranks, "rank");
    diag.attachNote(mesh.getLoc())
        << "give the axes that shard it a size that divides " << extent;
    return diag;
  }
  return success();
}

LogicalResult BackwardOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto step = (*this)->getParentOfType<StepOp>();
  if (!step)
    return emitOpError() << "must be inside a zero.step";
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(step, step.getMeshAttr());
  if (!mesh)
    return success(); // step_c1 says so
  if (getSources().size() != getNumResults())
    return emitOpError() << "has " << countOf(getSources().size(), "source")
                         << " and " << countOf(getNumResults(), "result");

  Scale scale = mesh.expandFlattened(
      multiply(getPrescaled().getFactors(),
               power(step.getNormalize().getFactors(), -1)));
  if (failed(verifySymbols(*this, "arrival", getPrescaledAttr(), step, mesh)))
    return failure();
  // step_c7
  int64_t lossScale = getExponent(getPrescaled().getFactors(), kLossScale);
  if (lossScale != (step.getLossScaleAttr() ? 1 : 0)) {
    InFlightDiagnostic diag =
        emitOpError() << "arrives with ("
                      << toString(getPrescaled().getFactors()) << "), expected "
                      << (step.getLossScaleAttr()
                              ? "loss_scale to the power of 1"
                              : "no loss_scale");
    diag.attachNote(step.getLoc())
        << "all gradients of the step are of one loss";
    return diag;
  }
  llvm::DenseSet<Attribute> seen;
  llvm::DenseMap<StringAttr, FlatSymbolRefAttr> sharded, placed; // by axis
  for (auto [source, resultType] :
       llvm::zip_equal(getSources().getAsRange<FlatSymbolRefAttr>(),
                       getGradients().getTypes())) {
    auto type = cast<ValueType>(resultType);
    // backward_c6
    if (type.isOnHost())
      return emitOpError() << "gradients arrive on the device, got " << type;
    // backward_c1
    Operation *symbol = symbols.lookupNearestSymbolFrom(*this, source);
    if (!isa_and_present<ParameterOp, BucketOp>(symbol))
      return emitOpError() << "source " << source
                           << " is not a zero.parameter or zero.bucket of this "
                              "module"
                           << suggest<ParameterOp, BucketOp>(*this, source);
    if (!seen.insert(source).second)
      return emitOpError() << "source " << source << " is listed twice";
    // backward_c2, backward_c5
    ValueType declared;
    if (auto bucket = dyn_cast<BucketOp>(symbol)) {
      declared = bucket.getValueType();
      if (bucket.getDtype() != type.getElementType())
        return emitOpError() << "bucket " << source << " keeps "
                             << bucket.getDtype() << ", got " << type;
    } else {
      auto parameter = cast<ParameterOp>(symbol);
      if (failed(verifyTrained(*this, parameter)))
        return failure();
      declared = parameter.getValueType();
    }
    auto emitError = [this, source = source] {
      return emitOpError() << "gradient of " << source << " ";
    };
    // From here on in axes of the mesh.
    FailureOr<ValueType> arriving = mesh.expandFlattened(type, emitError);
    FailureOr<ValueType> living = mesh.expandFlattened(declared, emitError);
    if (failed(arriving) || failed(living))
      return failure();
    auto getExpected = [&, &living = *living] {
      return getExpectedArrival(*this, living, type.getElementType(), scale,
                                mesh);
    };
    if (declared.getShape() != type.getShape()) {
      InFlightDiagnostic diag = emitOpError()
                                << "gradient of " << source
                                << " must have its shape, got " << type
                                << ", expected " << getExpected();
      diag.attachNote(symbol->getLoc()) << source << " is declared here";
      return diag;
    }
    if (failed(verifyStages(*this, source, *living, mesh)) ||
        failed(verifyArrival(*this, source, *living, *arriving, scale, mesh)) ||
        failed(
            verifyDivides(*this, source, *living, mesh, isa<BucketOp>(symbol))))
      return failure();
    // backward_c4
    if (Scale(arriving->getScale()) != scale)
      return emitOpError() << "gradient of " << source
                           << " must be scaled by prescaled / normalize = ("
                           << toString(scale) << "), got " << type
                           << ", expected " << getExpected();
    for (StringAttr axis : living->getAxes(PlacementKind::Sharded))
      sharded.try_emplace(axis, source);
    for (StringAttr axis : living->getStageAxes())
      placed.try_emplace(axis, source);
  }
  // backward_c11
  for (auto [axis, source] : placed)
    if (FlatSymbolRefAttr other = sharded.lookup(axis))
      return emitOpError() << "source " << source << " is on some coordinates "
                           << "of " << axis << ", and " << other
                           << " is sharded over it; declare a parameter for "
                              "each coordinate of "
                           << axis << " instead of " << other
                           << ", or shard both";
  return verifySquare(*this, scale, mesh); // backward_c10
}
