//===- LogicalOps.cpp - Rules of the logical phase ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zero/Suggest.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero;

//===----------------------------------------------------------------------===//
// zero.reduce, zero.norm, zero.clip
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  auto micro = StringAttr::get(getContext(), kMicroAxis);
  for (Value input : getInputs()) {
    auto type = cast<ValueType>(input.getType());
    // reduce_c1
    if (type.getPlacement(micro).kind == PlacementKind::Partial)
      return emitOpError() << "operand is still partial over 'micro': sum it "
                              "over the backward passes first, got "
                           << type;
    if (type.has(PlacementKind::Varying))
      return emitOpError() << "operand is varying and no addend, got " << type;
  }
  return verifyReduceDtype(*this, getInputs(), getReduceDtype());
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &inferred) {
  for (Type input : adaptor.getInputs().getTypes()) {
    auto type = cast<ValueType>(input);
    for (StringAttr axis : type.getAxes(PlacementKind::Partial))
      type = type.withPlacement({axis});
    inferred.push_back(type.withScale({}));
  }
  return success();
}

LogicalResult NormOp::verify() {
  return verifyReduced(*this, getInputs()); // norm_c1
}

LogicalResult NormOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location>, Adaptor,
                                       SmallVectorImpl<Type> &inferred) {
  inferred.push_back(getScalarType(context));
  return success();
}

/// clip_c2, clip_coefficient_c2
static LogicalResult verifyClip(Operation *op, Value input,
                                std::optional<APFloat> constant,
                                const APFloat &epsilon) {
  if (constant.has_value() == bool(input))
    return op->emitOpError() << "needs a max that is either a constant or an "
                                "argument of the step";
  double max = constant ? constant->convertToDouble() : 1.0;
  if (failed(verifyFinite(
          op, "number",
          Builder(op->getContext()).getStrArrayAttr({"max", "epsilon"}),
          {max, epsilon.convertToDouble()})))
    return failure();
  if (!(max > 0))
    return op->emitOpError() << "max must be positive, got " << max;
  if (!(epsilon.convertToDouble() > 0))
    return op->emitOpError()
           << "epsilon must be positive, got " << epsilon.convertToDouble();
  if (!input || isa<BlockArgument>(input))
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "max must be a constant or an argument of the "
                               "step, which apply checks to be positive";
  diag.attachNote(input.getLoc()) << "got this value";
  return diag;
}

LogicalResult ClipOp::verify() {
  // clip_c1
  if (failed(verifyReduced(*this, getInputs())) ||
      failed(verifyFinal(*this, getNorm())))
    return failure();
  return verifyClip(*this, getMax(), getConstantMax(), getEpsilon());
}

LogicalResult ClipOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &inferred) {
  llvm::append_range(inferred, adaptor.getInputs().getTypes());
  return success();
}

LogicalResult ClipCoefficientOp::verify() {
  // clip_coefficient_c1
  if (failed(verifyFinal(*this, getNorm())))
    return failure();
  return verifyClip(*this, getMax(), getConstantMax(), getEpsilon());
}

//===----------------------------------------------------------------------===//
// zero.update
//===----------------------------------------------------------------------===//

LogicalResult UpdateOp::verify() {
  // update_c3, update_c5
  if (failed(verifyReduced(*this, getGradients())) ||
      failed(verifyFinal(*this, getHyper())))
    return failure();
  for (NamedAttribute constant : getHyperConstants())
    if (failed(verifyFiniteF64(*this, "hyperparameter", constant)))
      return failure();
  if (getHyperNames().size() != getHyper().size())
    return emitOpError() << "has "
                         << countOf(getHyper().size(), "hyperparameter value")
                         << " and " << countOf(getHyperNames().size(), "name");
  return success();
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // update_c1
  auto group = symbols.lookupNearestSymbolFrom<GroupOp>(*this, getGroupAttr());
  if (!group)
    return emitOpError() << "parameter group " << getGroupAttr()
                         << " is not a zero.group of this module"
                         << suggest<GroupOp>(*this, getGroupAttr());
  auto optimizer =
      symbols.lookupNearestSymbolFrom<OptimizerOp>(*this, getOptimizerAttr());
  if (!optimizer)
    return emitOpError() << "optimizer " << getOptimizerAttr()
                         << " is not a zero.optimizer of this module"
                         << suggest<OptimizerOp>(*this, getOptimizerAttr());
  // update_c2
  if (group.getMembers().size() != getGradients().size()) {
    InFlightDiagnostic diag =
        emitOpError() << "parameter group " << getGroupAttr() << " has "
                      << countOf(group.getMembers().size(), "member")
                      << ", got " << countOf(getGradients().size(), "gradient");
    diag.attachNote(group.getLoc()) << "parameter group is declared here";
    return diag;
  }
  for (auto [member, gradient] :
       llvm::zip_equal(group.getMembers().getAsRange<FlatSymbolRefAttr>(),
                       getGradients())) {
    auto parameter =
        symbols.lookupNearestSymbolFrom<ParameterOp>(*this, member);
    if (!parameter)
      return success(); // group_c1 says so
    auto type = cast<ValueType>(gradient.getType());
    ValueType expected =
        parameter.getValueType().withElementType(type.getElementType());
    if (parameter.getShape() != type.getShape())
      return emitOpError() << "gradient of " << member
                           << " must have its shape, got " << type
                           << ", expected " << expected;
    // update_c3
    if (!type.hasPlacementOf(parameter.getValueType())) {
      InFlightDiagnostic diag = emitOpError()
                                << "gradient of " << member
                                << " must be placed as the parameter, got "
                                << type << ", expected " << expected;
      diag.attachNote(parameter.getLoc())
          << member << " is " << parameter.getValueType();
      return diag;
    }
  }
  // update_c4
  SmallVector<StringAttr> given(getHyperNames().getAsRange<StringAttr>());
  for (NamedAttribute constant : getHyperConstants())
    given.push_back(constant.getName());
  for (StringAttr name : given)
    if (!llvm::is_contained(optimizer.getHyperNames(), name)) {
      InFlightDiagnostic diag = emitOpError()
                                << "optimizer " << getOptimizerAttr()
                                << " has no hyperparameter " << name;
      diag.attachNote(optimizer.getLoc())
          << "its hyperparameters are " << optimizer.getHyperNames();
      return diag;
    }
  for (auto name : optimizer.getHyperNames().getAsRange<StringAttr>())
    if (!llvm::is_contained(given, name) &&
        !optimizer.getHyperDefaults().contains(name))
      return emitOpError() << "hyperparameter " << name << " of optimizer "
                           << getOptimizerAttr()
                           << " has neither a value nor a default";
  return success();
}
