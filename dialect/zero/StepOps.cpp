//===- StepOps.cpp - Rules of a step and of what arrives in it ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Rules.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero;

//===----------------------------------------------------------------------===//
// zero.step, zero.return
//===----------------------------------------------------------------------===//

ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  FlatSymbolRefAttr mesh;
  Scale weight;
  SMLoc weightLoc;
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc argumentsLoc;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseKeyword("on") ||
      parser.parseAttribute(mesh, getMeshAttrName(result.name),
                            result.attributes) ||
      parser.parseKeyword("weight") || parser.getCurrentLocation(&weightLoc) ||
      parseScaleFactors(parser, weight, AsmParser::Delimiter::Paren))
    return failure();
  if (multiply(weight, {}).size() != weight.size())
    return parser.emitError(weightLoc)
           << "expected each symbol once and no exponent 0, got ("
           << toString(weight) << ")";
  result.addAttribute(getWeightAttrName(result.name),
                      ScaleAttr::get(parser.getContext(), weight));
  Nonfinite nonfinite = Nonfinite::skip;
  if (succeeded(parser.parseOptionalKeyword("nonfinite"))) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<Nonfinite> parsed = symbolizeNonfinite(keyword);
    if (!parsed)
      return parser.emitError(loc)
             << "expected skip, poison or error, got '" << keyword << "'";
    nonfinite = *parsed;
  }
  result.addAttribute(getNonfiniteAttrName(result.name),
                      NonfiniteAttr::get(parser.getContext(), nonfinite));
  if (parser.getCurrentLocation(&argumentsLoc) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true, /*allowAttrs=*/true))
    return failure();
  // step_c6
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.attrs.empty())
      continue;
    if (argument.attrs.size() > 1 ||
        !isa_and_present<UnitAttr>(argument.attrs.get(kTokensArgument)))
      return parser.emitError(argumentsLoc)
             << "argument " << i << " may be {" << kTokensArgument
             << "} and nothing else, got " << argument.attrs;
    StringAttr attribute = getTokensArgumentAttrName(result.name);
    if (result.attributes.get(attribute))
      return parser.emitError(argumentsLoc)
             << "two arguments are {" << kTokensArgument << "}";
    result.addAttribute(attribute, parser.getBuilder().getI64IntegerAttr(i));
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  return success();
}

void StepOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " on " << getMeshAttr() << " weight(";
  printScaleFactors(printer, getWeight().getFactors());
  printer << ") ";
  if (getNonfinite() != Nonfinite::skip)
    printer << "nonfinite " << stringifyNonfinite(getNonfinite()) << " ";
  printer << "(";
  NamedAttribute tokens(StringAttr::get(getContext(), kTokensArgument),
                        UnitAttr::get(getContext()));
  llvm::interleaveComma(
      getBody().getArguments(), printer, [&](BlockArgument argument) {
        printer.printRegionArgument(argument, argument == getTokens()
                                                  ? ArrayRef(tokens)
                                                  : std::nullopt);
      });
  printer << ") ";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getMeshAttrName(), getWeightAttrName(),
       getNonfiniteAttrName(), getTokensArgumentAttrName()});
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

BlockArgument StepOp::getTokens() {
  std::optional<int64_t> index = getTokensArgument();
  Block &block = getBody().front();
  return index && *index >= 0 && *index < int64_t(block.getNumArguments())
             ? block.getArgument(*index)
             : nullptr;
}

bool StepOp::dividesByTokens() {
  WalkResult result = getBody().walk([](BackwardOp op) {
    for (Type type : op.getGradients().getTypes())
      if (cast<ValueType>(type).isScaledBy(kTokens))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

FlatSymbolRefAttr StepOp::getLossScale() {
  FlatSymbolRefAttr found;
  getBody().walk([&](BackwardOp op) {
    if (auto scale = findLossScale(op.getArrives().getFactors()))
      found = scale;
  });
  return found;
}

LogicalResult StepOp::verifyRegions() {
  Block &block = getBody().front();
  // step_c3
  for (BlockArgument argument : block.getArguments()) {
    auto type = dyn_cast<ValueType>(argument.getType());
    if (!type || !type.isScalar() || !type.getElementType().isF64())
      return emitOpError() << "argument " << argument.getArgNumber()
                           << " must be an f64 scalar, got "
                           << argument.getType();
  }
  // step_c6
  BlockArgument tokens = getTokens();
  if (getTokensArgument() && !tokens)
    return emitOpError() << "has " << block.getNumArguments()
                         << " arguments, and tokens are argument "
                         << int64_t(*getTokensArgument());
  if (tokens && !cast<ValueType>(tokens.getType()).isShare())
    return emitOpError() << "tokens must be replicated or partial, and have no "
                            "scale, got "
                         << tokens.getType();
  // step_c4
  if (block.empty() || !isa<ReturnOp>(block.back()))
    return emitOpError() << "must end with zero.return";
  return success();
}

LogicalResult StepOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // step_c1
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
  if (!mesh)
    return emitOpError() << "mesh " << getMeshAttr()
                         << " is not a zero.mesh of this module";
  // step_c2
  if (failed(verifySymbols(*this, "weight", getWeightAttr(), mesh, symbols)))
    return failure();
  // step_c7
  if (findLossScale(getWeight().getFactors()))
    return emitOpError() << "weighs by a loss scale, which belongs to what "
                            "gradients arrive with: ("
                         << toString(getWeight().getFactors()) << ")";
  if (getLossScale() && getNonfinite() == Nonfinite::poison)
    return emitOpError() << "has a loss scale and nonfinite poison: no step "
                            "would tell that it is too large";
  // step_c6
  if (!getTokens() && dividesByTokens())
    return emitOpError() << "divides by tokens, and no argument is said to be "
                            "their number: write {"
                         << kTokensArgument << "} behind its type";
  // What is wrong with an op inside explains more than that a gradient has no
  // update.
  WalkResult users = getBody().walk([&](SymbolUserOpInterface user) {
    return WalkResult(user.verifySymbolUses(symbols));
  });
  if (users.wasInterrupted())
    return failure();
  return verifyEachGradientIsUpdatedOnce(*this, symbols);
}

LogicalResult ReturnOp::verify() {
  // return_c1
  if (getNames().size() != getValues().size())
    return emitOpError() << "has " << getValues().size() << " values and "
                         << getNames().size() << " names";
  llvm::StringSet<> names;
  for (auto name : getNames().getAsRange<StringAttr>()) {
    bool isWord = llvm::all_of(
        name.getValue(), [](char c) { return llvm::isAlnum(c) || c == '_'; });
    // C names of results are in upper case.
    if (name.getValue().empty() || !isWord ||
        !names.insert(name.getValue().upper()).second)
      return emitOpError() << "name " << name
                           << " must be a word that no other result has";
  }
  if (getValues().size() > 16)
    return emitOpError() << "reports at most 16 values, got "
                         << getValues().size();
  // return_c2
  return verifyFinal(*this, getValues());
}

//===----------------------------------------------------------------------===//
// zero.micro_batches
//===----------------------------------------------------------------------===//

/// What the sum over the backwards of |type| is. What autograd has summed is a
/// gradient like any other from here on.
static ValueType sumOverMicro(ValueType type, Type accumulatorType) {
  auto micro = StringAttr::get(type.getContext(), kMicroAxis);
  for (AxisPlacement placement : llvm::to_vector(type.getPlacements())) {
    placement.presummed = false;
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
  if (parser.parseKeyword("in") || parser.parseType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
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
    if (!isa<FloatType>(type))
      return parser.emitError(loc)
             << "expected a float type after 'in', got " << type;
    result.addTypes(sumOverMicro(value, type));
  }
  return success();
}

void MicroBatchesOp::print(OpAsmPrinter &printer) {
  printer << " in " << getAccumulatorType() << " ";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getAccumulatorTypeAttrName()});
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
    return emitOpError() << "has " << getNumResults() << " results and yields "
                         << yield.getNumOperands() << " values";
  auto micro = StringAttr::get(getContext(), kMicroAxis);
  for (auto [value, sum] :
       llvm::zip_equal(yield.getValues(), getResultTypes())) {
    auto type = dyn_cast<ValueType>(value.getType());
    // micro_batches_c1
    if (!type || type.getPlacement(micro).kind != PlacementKind::Partial)
      return yield.emitOpError()
             << "yields a value that is not partial over 'micro' and would be "
                "counted once per backward: "
             << value.getType();
    // micro_batches_c2
    if (!isa<FloatType>(getAccumulatorType()) ||
        (type.getElementType() != getAccumulatorType() &&
         type.getElementType().getIntOrFloatBitWidth() >=
             getAccumulatorType().getIntOrFloatBitWidth()))
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

/// backward_c3 and backward_c7: how the gradient of |source|, which is
/// |declared|, arrives over each axis.
static LogicalResult verifyArrival(BackwardOp op, FlatSymbolRefAttr source,
                                   ValueType declared, ValueType type,
                                   MeshOp mesh) {
  auto emitError = [&]() {
    return op.emitOpError() << "gradient of " << source;
  };
  auto micro = StringAttr::get(op.getContext(), kMicroAxis);
  if (type.getPlacement(micro).kind != PlacementKind::Partial)
    return emitError() << " must be partial over 'micro', got " << type;
  if (type.getPresent() != declared.getPresent())
    return emitError() << " must be where " << source << " is, " << declared
                       << ", got " << type;
  for (ValueType each : {declared, type})
    for (const AxisPlacement &p : each.getPlacements())
      if (p.axis != micro && !mesh.getAxisSize(p.axis))
        return emitError() << " has a placement over '" << p.axis.getValue()
                           << "', which is no axis of mesh @"
                           << mesh.getSymName() << ", got " << each;
  if (op.getReplicatedAttr())
    for (auto axis : op.getReplicated()->getAsRange<StringAttr>())
      if (!mesh.getAxisSize(axis))
        return op.emitOpError()
               << "is replicated over " << axis
               << ", which is no axis of mesh @" << mesh.getSymName();
  ArrayRef<ScaleFactor> weight =
      op->getParentOfType<StepOp>().getWeight().getFactors();
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    AxisPlacement arrives = type.getPlacement(axis.getName());
    AxisPlacement lives = declared.getPlacement(axis.getName());
    bool isSharded = arrives.kind == PlacementKind::Sharded;
    if (isSharded != (lives.kind == PlacementKind::Sharded) ||
        (isSharded && arrives.dim != lives.dim))
      return emitError() << " must be sharded over " << axis.getName()
                         << " as the parameter is, " << declared << ", got "
                         << type;
    bool mayBeReplicated =
        op.getReplicatedAttr() &&
        llvm::is_contained(*op.getReplicated(), axis.getName());
    bool isReplicated = arrives.kind == PlacementKind::Replicated &&
                        (mayBeReplicated || arrives.presummed);
    if (!isSharded && !isReplicated && arrives.kind != PlacementKind::Partial)
      return emitError() << " must be partial over " << axis.getName()
                         << (mayBeReplicated
                                 ? ""
                                 : ", or said to be 'replicated' there")
                         << ", got " << type;
    // backward_c7
    bool isBatchAxis = llvm::any_of(weight, [&](const ScaleFactor &factor) {
      return factor.symbol == axis.getName() && factor.exponent < 0;
    });
    if (isBatchAxis && arrives.kind != PlacementKind::Partial &&
        !arrives.presummed)
      return emitError() << " must be partial or presummed over "
                         << axis.getName()
                         << ", whose ranks have batches of their own, got "
                         << type;
  }
  return success();
}

/// backward_c8: axes divide what they shard.
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
                              << " has " << extent << " elements in dimension "
                              << dim << ", sharded over " << ranks << " ranks";
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
    return emitOpError() << "has " << getSources().size() << " sources and "
                         << getNumResults() << " results";

  Scale scale = multiply(getArrives().getFactors(),
                         power(step.getWeight().getFactors(), -1));
  if (failed(verifySymbols(*this, "arrival", getArrivesAttr(), mesh, symbols)))
    return failure();
  // step_c7
  FlatSymbolRefAttr lossScale = step.getLossScale();
  for (const ScaleFactor &factor : getArrives().getFactors())
    if (findLossScale(factor) &&
        (findLossScale(factor) != lossScale || factor.exponent != 1))
      return emitOpError() << "arrives with ("
                           << toString(getArrives().getFactors())
                           << "), expected one loss scale, to the power of 1";
  if (findLossScale(getArrives().getFactors()) != lossScale)
    return emitOpError() << "arrives without loss scale " << lossScale
                         << ", which another zero.backward of the step names: "
                            "all gradients are of one loss";
  llvm::DenseSet<Attribute> seen;
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
                              "module";
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
      declared = cast<ParameterOp>(symbol).getValueType();
    }
    if (declared.getShape() != type.getShape()) {
      InFlightDiagnostic diag = emitOpError()
                                << "gradient of " << source
                                << " must have its shape, got " << type;
      diag.attachNote(symbol->getLoc()) << source << " is declared here";
      return diag;
    }
    if (failed(verifyArrival(*this, source, declared, type, mesh)) ||
        failed(verifyDivides(*this, source, declared, mesh,
                             isa<BucketOp>(symbol))))
      return failure();
    // backward_c4
    if (Scale(type.getScale()) != scale)
      return emitOpError() << "gradient of " << source
                           << " must be scaled by arrival / weight = ("
                           << toString(scale) << "), got " << type;
  }
  return success();
}
