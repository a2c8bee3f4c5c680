//===- StepOps.cpp - Rules of a step and of what it reports ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zero/Suggest.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
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
  Scale normalize;
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc argumentsLoc;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseKeyword("on") ||
      parser.parseAttribute(mesh, getMeshAttrName(result.name),
                            result.attributes) ||
      parser.parseKeyword("normalize") ||
      parseMonomial(parser, normalize, AsmParser::Delimiter::Paren))
    return failure();
  result.addAttribute(getNormalizeAttrName(result.name),
                      ScaleAttr::get(parser.getContext(), normalize));
  Nonfinite nonfinite = Nonfinite::skip;
  if (succeeded(parser.parseOptionalKeyword("nonfinite"))) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<Nonfinite> parsed = symbolizeNonfinite(keyword);
    if (!parsed)
      return parser.emitError(loc)
             << "expected skip, apply or error, got '" << keyword << "'";
    nonfinite = *parsed;
  }
  result.addAttribute(getNonfiniteAttrName(result.name),
                      NonfiniteAttr::get(parser.getContext(), nonfinite));
  FlatSymbolRefAttr lossScale;
  if (succeeded(parser.parseOptionalKeyword("loss_scale")) &&
      parser.parseAttribute(lossScale, getLossScaleAttrName(result.name),
                            result.attributes))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("one_backward")))
    result.addAttribute(getOneBackwardAttrName(result.name),
                        parser.getBuilder().getUnitAttr());
  if (parser.getCurrentLocation(&argumentsLoc) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true, /*allowAttrs=*/true))
    return failure();
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> names(arguments.size(), builder.getStringAttr(""));
  bool isNamed = false;
  for (auto [i, argument] : llvm::enumerate(arguments))
    for (NamedAttribute entry : argument.attrs) {
      bool isTokens =
          entry.getName() == kTokensArgument && isa<UnitAttr>(entry.getValue());
      auto given = dyn_cast<StringAttr>(entry.getValue());
      // step_c6, step_c8
      if (!isTokens &&
          (entry.getName() != kNamedArgument || !given || given.empty()))
        return parser.emitError(argumentsLoc)
               << "argument " << i << " may be {" << kTokensArgument
               << "} or have a {" << kNamedArgument
               << " = \"...\"}, and nothing else, got " << argument.attrs;
      if (isTokens) {
        StringAttr attribute = getTokensArgumentAttrName(result.name);
        if (result.attributes.get(attribute))
          return parser.emitError(argumentsLoc)
                 << "two arguments are {" << kTokensArgument << "}";
        result.addAttribute(attribute, builder.getI64IntegerAttr(i));
      } else {
        names[i] = given;
        isNamed = true;
      }
    }
  if (isNamed)
    result.addAttribute(getArgumentNamesAttrName(result.name),
                        builder.getArrayAttr(names));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments,
                         /*enableNameShadowing=*/true))
    return failure();
  return success();
}

void StepOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " on " << getMeshAttr() << " normalize(";
  printScaleFactors(printer, getNormalize().getFactors());
  printer << ") ";
  if (getNonfinite() != Nonfinite::skip)
    printer << "nonfinite " << stringifyNonfinite(getNonfinite()) << " ";
  if (getLossScaleAttr())
    printer << "loss_scale " << getLossScaleAttr() << " ";
  if (getOneBackward())
    printer << "one_backward ";
  printer << "(";
  Builder builder(getContext());
  llvm::interleaveComma(
      getBody().getArguments(), printer, [&](BlockArgument argument) {
        SmallVector<NamedAttribute, 2> attributes;
        if (StringRef name = getArgumentName(argument); !name.empty())
          attributes.push_back(builder.getNamedAttr(
              kNamedArgument, builder.getStringAttr(name)));
        if (argument == getTokens())
          attributes.push_back(
              builder.getNamedAttr(kTokensArgument, builder.getUnitAttr()));
        printer.printRegionArgument(argument, attributes);
      });
  printer << ") ";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getMeshAttrName(), getNormalizeAttrName(),
       getNonfiniteAttrName(), getLossScaleAttrName(), getOneBackwardAttrName(),
       getTokensArgumentAttrName(), getArgumentNamesAttrName()});
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

StringRef StepOp::getArgumentName(BlockArgument argument) {
  ArrayAttr names = getArgumentNamesAttr();
  unsigned number = argument.getArgNumber();
  return names && number < names.size()
             ? cast<StringAttr>(names[number]).getValue()
             : "";
}

BlockArgument StepOp::getTokens() {
  std::optional<int64_t> index = getTokensArgument();
  Block &block = getBody().front();
  return index && *index >= 0 && *index < int64_t(block.getNumArguments())
             ? block.getArgument(*index)
             : nullptr;
}

/// Whether a gradient with |scale| is divided by the tokens, once, and by no
/// number of backward passes.
static bool dividesByTokensOnly(ArrayRef<ScaleFactor> scale) {
  return getExponent(scale, kTokens) == 1 &&
         getExponent(scale, kAccumulation) == 0;
}

bool StepOp::isMaxNorm(BlockArgument argument) {
  return llvm::any_of(argument.getUses(), [](OpOperand &use) {
    if (auto clip = dyn_cast<ClipOp>(use.getOwner()))
      return clip.getMax() == use.get();
    auto coefficient = dyn_cast<ClipCoefficientOp>(use.getOwner());
    return coefficient && coefficient.getMax() == use.get();
  });
}

SmallVector<StringAttr> StepOp::getBatchAxes(MeshOp mesh) {
  llvm::SmallSetVector<StringAttr, 4> axes;
  BlockArgument tokens = getTokens();
  for (const ScaleFactor &factor :
       mesh.expandFlattened(getNormalize().getFactors())) {
    if (factor.exponent >= 0)
      continue;
    if (mesh.getAxisSize(factor.symbol))
      axes.insert(factor.symbol);
    else if (factor.symbol.getValue() == kTokens && tokens)
      for (StringAttr name : // step_c4 checks the type
           cast<ValueType>(tokens.getType()).getAxes(PlacementKind::Partial))
        if (auto found = mesh.findAxes(name))
          axes.insert(found->begin(), found->end());
  }
  return SmallVector<StringAttr>(axes.begin(), axes.end());
}

bool StepOp::saysBatches(MeshOp mesh) {
  auto isOfSeveral = [&](StringAttr axis) {
    std::optional<SmallVector<StringAttr>> axes = mesh.findAxes(axis);
    return axes && mesh.getNumRanks(*axes) != 1;
  };
  if (llvm::none_of(getSummedAxes(), isOfSeveral))
    return true;
  Scale factors = mesh.expandFlattened(getNormalize().getFactors());
  SmallVector<StringAttr> batchAxes = getBatchAxes(mesh);
  // Ranks may share the tokens of a sequence. One axis is that of batches.
  if (getExponent(factors, kTokens) != 0)
    return factors.size() == 1 && batchAxes.size() == 1;
  int64_t power = getExponent(factors, kAccumulation);
  return !batchAxes.empty() && power != 0 &&
         llvm::all_of(factors, [&](const ScaleFactor &factor) {
           return factor.exponent == power || !isOfSeveral(factor.symbol);
         });
}

SmallVector<StringAttr> StepOp::getSummedAxes() {
  llvm::SmallSetVector<StringAttr, 4> axes;
  walk([&](BackwardOp backward) {
    for (Type type : backward.getResultTypes())
      for (StringAttr axis :
           cast<ValueType>(type).getAxes(PlacementKind::Partial))
        if (axis != kMicroAxis)
          axes.insert(axis);
  });
  return SmallVector<StringAttr>(axes.begin(), axes.end());
}

bool StepOp::takesUnequalBackwards() {
  auto mesh =
      SymbolTable::lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
  BlockArgument tokens = getTokens();
  if (!mesh || !tokens || getOneBackward() ||
      !dividesByTokensOnly(power(getNormalize().getFactors(), -1)))
    return false;
  auto isOwn = [&](Type type) {
    return llvm::all_of(mesh.getAxes().getAsRange<MeshAxisAttr>(),
                        [&](MeshAxisAttr axis) {
                          auto value = cast<ValueType>(type);
                          return axis.getSize() == 1 ||
                                 value.getPlacement(axis.getName()).kind ==
                                     PlacementKind::Partial;
                        });
  };
  WalkResult result = getBody().walk([&](BackwardOp op) {
    return WalkResult(
        success(llvm::all_of(op.getGradients().getTypes(), [&](Type type) {
          return isOwn(type) &&
                 dividesByTokensOnly(cast<ValueType>(type).getScale());
        })));
  });
  return isOwn(tokens.getType()) && !result.wasInterrupted();
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
    return emitOpError() << "has "
                         << countOf(block.getNumArguments(), "argument")
                         << ", and tokens are argument "
                         << int64_t(*getTokensArgument());
  if (tokens && !cast<ValueType>(tokens.getType()).isShare())
    return emitOpError() << "tokens must be replicated or partial, and have no "
                            "scale, got "
                         << tokens.getType();
  // step_c8
  if (ArrayAttr names = getArgumentNamesAttr()) {
    if (names.size() != block.getNumArguments())
      return emitOpError() << "has "
                           << countOf(block.getNumArguments(), "argument")
                           << ", and " << countOf(names.size(), "name")
                           << " of arguments";
    llvm::StringSet<> seen;
    for (StringRef name : names.getAsValueRange<StringAttr>()) {
      if (!name.empty() && !seen.insert(name).second)
        return emitOpError() << "two arguments are called '" << name << "'";
      if (llvm::any_of(name, [](unsigned char c) { return c < ' '; }))
        return emitOpError() << "name of an argument has a control character: "
                             << StringAttr::get(getContext(), name);
    }
  }
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
                         << " is not a zero.mesh of this module"
                         << suggest<MeshOp>(*this, getMeshAttr());
  if (failed(verifyActivations(*this, mesh)))
    return failure();
  // step_c2
  if (failed(
          verifySymbols(*this, "normalize", getNormalizeAttr(), *this, mesh)))
    return failure();
  // step_c7
  if (getLossScaleAttr() &&
      !symbols.lookupNearestSymbolFrom<LossScaleOp>(*this, getLossScaleAttr()))
    return emitOpError() << "loss scale " << getLossScaleAttr()
                         << " is not a zero.loss_scale of this module";
  if (getExponent(getNormalize().getFactors(), kLossScale) != 0)
    return emitOpError() << "weighs by a loss scale, which belongs to what "
                            "gradients arrive with: ("
                         << toString(getNormalize().getFactors()) << ")";
  if (getLossScaleAttr() && getNonfinite() == Nonfinite::apply)
    return emitOpError() << "has a loss scale and nonfinite apply: no step "
                            "would tell that it is too large";
  // step_c6
  if (!getTokens() && dividesByTokens())
    return emitOpError() << "divides by tokens, and no argument is said to be "
                            "their number: write {"
                         << kTokensArgument << "} behind its type";
  // An error of an op inside explains more than a gradient without an update.
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
    return emitOpError() << "has " << countOf(getValues().size(), "value")
                         << " and " << countOf(getNames().size(), "name");
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
  // return_c2
  return verifyFinal(*this, getValues());
}
