//===- Flattened.cpp - Names for several axes together --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Flattened axes always have a common refinement, the axes of the mesh. A type
// is invalid if it names one of these axes twice.
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Flattened.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace zero;

std::optional<SmallVector<StringAttr>> MeshOp::findAxes(StringAttr name) {
  if (getAxisSize(name))
    return SmallVector<StringAttr>{name};
  for (auto view : getFlattened().getAsRange<FlattenedAxesAttr>())
    if (view.getName() == name)
      return llvm::to_vector(view.getAxes().getAsRange<StringAttr>());
  return std::nullopt;
}

FailureOr<ValueType>
MeshOp::expandFlattened(ValueType type,
                        function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<AxisPlacement> placements;
  for (AxisPlacement placement : type.getPlacements())
    for (StringAttr axis :
         findAxes(placement.axis).value_or(SmallVector{placement.axis})) {
      for (const AxisPlacement &other : placements)
        if (other.axis == axis)
          return emitError()
                 << "names axis '" << axis.getValue()
                 << "' twice, by a flattened axis of the mesh, got " << type;
      placement.axis = axis;
      placements.push_back(placement);
    }
  ValueType expanded = ValueType::getSortedChecked(
      emitError, getContext(), type.getShape(), type.getElementType(),
      std::move(placements), SmallVector<AxisCoordinate>(type.getPresent()),
      expandFlattened(type.getScale()), type.getSpace());
  if (!expanded)
    return failure();
  return expanded;
}

Scale MeshOp::expandFlattened(ArrayRef<ScaleFactor> scale) {
  Scale expanded;
  for (ScaleFactor factor : scale)
    for (StringAttr axis :
         findAxes(factor.symbol).value_or(SmallVector{factor.symbol})) {
      factor.symbol = axis;
      expanded = multiply(expanded, factor);
    }
  return expanded;
}

MeshOp zero::findFlattened(ModuleOp module) {
  for (auto mesh : module.getOps<MeshOp>())
    if (!mesh.getFlattened().empty())
      return mesh;
  return nullptr;
}

/// `replicated [dp]`, a list of names that is no type.
static void expandReplicated(BackwardOp backward, MeshOp mesh) {
  if (!backward.getReplicatedAttr())
    return;
  SmallVector<Attribute> axes;
  for (auto name : backward.getReplicated()->getAsRange<StringAttr>())
    llvm::append_range(axes, mesh.findAxes(name).value_or(SmallVector{name}));
  backward.setReplicatedAttr(ArrayAttr::get(backward.getContext(), axes));
}

LogicalResult zero::expandFlattened(ModuleOp module) {
  MeshOp mesh = findFlattened(module);
  if (!mesh)
    return success();
  for (auto other : module.getOps<MeshOp>()) {
    if (other == mesh)
      continue;
    bool isTaken =
        llvm::any_of(mesh.getFlattened().getAsRange<FlattenedAxesAttr>(),
                     [&](FlattenedAxesAttr view) {
                       return other.getAxisSize(view.getName());
                     });
    if (other.getFlattened().empty() && !isTaken)
      continue;
    InFlightDiagnostic diag = other.emitError();
    if (isTaken)
      diag << "has an axis with the name of a flattened axis of another mesh";
    else
      diag << "a module has the flattened axes of one mesh";
    diag.attachNote(mesh.getLoc()) << "the other mesh is here";
    return diag;
  }
  MLIRContext *context = module.getContext();
  bool isGood = true;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](ValueType type) -> std::optional<Type> {
    FailureOr<ValueType> expanded =
        mesh.expandFlattened(type, [&] { return mesh.emitError("a value "); });
    isGood &= succeeded(expanded);
    return succeeded(expanded) ? *expanded : type;
  });
  replacer.addReplacement([&](ScaleAttr scale) -> std::optional<Attribute> {
    return ScaleAttr::get(context, mesh.expandFlattened(scale.getFactors()));
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  module.walk([&](BackwardOp op) { expandReplicated(op, mesh); });
  mesh.setFlattenedAttr(ArrayAttr::get(context, {}));
  return success(isGood);
}
