//===- SymbolOps.cpp - Mesh, parameters, optimizers ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zero/StorageTypes.h"
#include "dialect/zero/Suggest.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero;

/// Limits far beyond any machine, so that products of sizes stay in 64 bits.
static constexpr int64_t kMaxRanks = int64_t(1) << 20;
static constexpr size_t kMaxAxes = 32;
static constexpr int64_t kMaxUses = 1024;

//===----------------------------------------------------------------------===//
// zero.mesh
//===----------------------------------------------------------------------===//

LogicalResult MeshOp::verify() {
  llvm::StringSet<> names{kMicroAxis, kAccumulation, kTokens, kLossScale};
  llvm::StringSet<> axisNames;
  int64_t ranks = 1;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>()) {
    // mesh_c1
    if (axis.getSize() < 1 || axis.getSize() > kMaxRanks)
      return emitOpError() << "axis " << axis.getName()
                           << " must have a size of at least 1 and at most "
                           << kMaxRanks << ", got " << axis.getSize();
    ranks *= axis.getSize();
    if (ranks > kMaxRanks)
      return emitOpError() << "has more than " << kMaxRanks << " ranks";
    // mesh_c2
    if (!names.insert(axis.getName()).second)
      return emitOpError() << "name " << axis.getName() << " is already taken";
    axisNames.insert(axis.getName());
  }
  // mesh_c1
  if (getAxes().size() > kMaxAxes)
    return emitOpError() << "has " << getAxes().size()
                         << " axes, expected at most " << kMaxAxes;
  for (auto view : getFlattened().getAsRange<FlattenedAxesAttr>()) {
    // mesh_c2
    if (!names.insert(view.getName()).second)
      return emitOpError() << "name " << view.getName() << " is already taken";
    // mesh_c3
    SmallVector<StringAttr> listed;
    for (Attribute axis : view.getAxes()) {
      auto name = dyn_cast<StringAttr>(axis);
      if (!name || !axisNames.contains(name) ||
          llvm::is_contained(listed, name))
        return emitOpError()
               << "flattened axis " << view.getName()
               << " must list axes of this mesh once each, got " << axis;
      listed.push_back(name);
    }
    if (listed != sortAxes(listed))
      return emitOpError() << "flattened axis " << view.getName()
                           << " must list axes in the order of the mesh, got "
                           << view.getAxes();
  }
  return success();
}

std::optional<int64_t> MeshOp::getAxisSize(StringRef name) {
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    if (axis.getName().getValue() == name)
      return axis.getSize();
  return std::nullopt;
}

int64_t MeshOp::getNumRanks() {
  int64_t product = 1;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    product *= axis.getSize();
  return product;
}

int64_t MeshOp::getNumRanks(ArrayRef<StringAttr> axes) {
  int64_t product = 1;
  for (StringAttr axis : axes)
    product *= getAxisSize(axis).value_or(1);
  return product;
}

int64_t MeshOp::getNumHeld(ValueType type) {
  return type.getNumElements() /
         getNumRanks(type.getAxes(PlacementKind::Sharded));
}

SmallVector<StringAttr> MeshOp::sortAxes(ArrayRef<StringAttr> axes) {
  SmallVector<StringAttr> sorted;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    if (llvm::is_contained(axes, axis.getName()))
      sorted.push_back(axis.getName());
  return sorted;
}

//===----------------------------------------------------------------------===//
// zero.parameter
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  // parameter_c1
  ValueType type = getValueType();
  for (const AxisPlacement &p : type.getPlacements())
    if (p.kind != PlacementKind::Sharded || p.reduced)
      return emitOpError() << "must be replicated or sharded, got "
                           << (p.reduced ? "reduced"
                                         : stringifyPlacementKind(p.kind))
                           << " over '" << p.axis.getValue() << "'";
  if (type.isScaled() || type.isOnHost())
    return emitOpError() << "must be unscaled and on the device, got " << type;
  // parameter_c3
  if (getFrozen() && (getOptional() || getUses() != 1))
    return emitOpError() << "is frozen and "
                         << (getOptional() ? "optional" : "has uses")
                         << ", which says how gradients arrive: none does";
  // parameter_c2
  if (!isUsedAnyTimes() && (getUses() < 1 || getUses() > kMaxUses))
    return emitOpError() << "uses must be at least 1 and at most " << kMaxUses
                         << ", or any, got " << getUses();
  return success();
}

//===----------------------------------------------------------------------===//
// zero.optimizer
//===----------------------------------------------------------------------===//

unsigned OptimizerOp::getNumScalars() {
  return getPrepare().front().getTerminator()->getNumOperands() -
         getCounterNames().size();
}

Type OptimizerOp::getMasterType() {
  return getUpdate().front().getArgument(1).getType();
}

SmallVector<Type> OptimizerOp::getStateTypes() {
  return llvm::map_to_vector(
      getUpdate().front().getArguments().slice(2, getStateNames().size()),
      [](BlockArgument argument) { return argument.getType(); });
}

LogicalResult OptimizerOp::verifyRegions() {
  // optimizer_c5
  if (failed(verifyNames(
          *this, {getHyperNames(), getCounterNames(), getStateNames()})))
    return failure();
  // optimizer_c6
  for (auto name : getStateNames().getAsRange<StringAttr>())
    if (name.getValue() == "parameter" || name.getValue() == "master")
      return emitOpError() << "state must not be called " << name
                           << ", which is what checkpoints call the parameter "
                              "itself or its copy";
  if (getCounterNames().size() != getCounterInitial().size())
    return emitOpError() << "has "
                         << countOf(getCounterNames().size(), "counter")
                         << " and "
                         << countOf(getCounterInitial().size(),
                                    "initial value");
  if (failed(verifyFinite(*this, "counter", getCounterNames(),
                          getCounterInitial())))
    return failure();
  for (NamedAttribute value : getHyperDefaults()) {
    if (failed(verifyFiniteF64(*this, "default of hyperparameter", value)))
      return failure();
    if (!llvm::is_contained(getHyperNames(), value.getName()))
      return emitOpError() << "default for unknown hyperparameter "
                           << value.getName();
  }

  // optimizer_c4
  for (Region *region : {&getPrepare(), &getUpdate()}) {
    for (Operation &op : region->front()) {
      if (isa<YieldOp>(op) ||
          isa_and_present<arith::ArithDialect, math::MathDialect>(
              op.getDialect()))
        continue;
      InFlightDiagnostic diag = op.emitOpError()
                                << "is not allowed in an optimizer, whose "
                                   "bodies hold arith and math ops only";
      diag.attachNote(getLoc()) << "in the body of @" << getSymName();
      return diag;
    }
    if (region->front().empty() || !isa<YieldOp>(region->front().back()))
      return emitOpError() << "bodies must end with zero.yield";
  }

  // optimizer_c1
  Block &prepare = getPrepare().front();
  size_t numArguments = getHyperNames().size() + getCounterNames().size();
  if (prepare.getNumArguments() != numArguments)
    return emitOpError() << "prepare must take "
                         << countOf(getHyperNames().size(), "hyperparameter")
                         << " and "
                         << countOf(getCounterNames().size(), "counter")
                         << ", got "
                         << countOf(prepare.getNumArguments(), "argument");
  Operation *prepared = prepare.getTerminator();
  if (prepared->getNumOperands() < getCounterNames().size())
    return emitOpError() << "prepare must yield the next value of "
                         << countOf(getCounterNames().size(), "counter")
                         << ", got "
                         << countOf(prepared->getNumOperands(), "value");
  auto isF64 = [](Type type) { return type.isF64(); };
  if (!llvm::all_of(prepare.getArgumentTypes(), isF64) ||
      !llvm::all_of(prepared->getOperandTypes(), isF64))
    return emitOpError() << "prepare must take and yield f64";
  // optimizer_c7
  for (Operation &op : prepare)
    for (Type type : op.getResultTypes())
      if (isa<FloatType>(type) && !type.isF64()) {
        InFlightDiagnostic diag = op.emitOpError()
                                  << "makes " << type
                                  << " in prepare, which computes in f64";
        diag.attachNote(getLoc()) << "in the body of @" << getSymName();
        return diag;
      }

  // optimizer_c2
  Block &update = getUpdate().front();
  size_t numStates = getStateNames().size();
  size_t numInputs = 2 + numStates + getNumScalars();
  if (update.getNumArguments() != numInputs)
    return emitOpError() << "update must take gradient, master, "
                         << countOf(numStates, "state") << " and "
                         << countOf(getNumScalars(), "scalar") << ", got "
                         << countOf(update.getNumArguments(), "argument");
  Type master = getMasterType();
  if (!master.isF32() && !master.isF64())
    return emitOpError() << "master must be f32 or f64, got " << master;
  for (auto [i, type] : llvm::enumerate(update.getArgumentTypes())) {
    bool isState = i >= 2 && i < 2 + numStates;
    if (isState ? !isStorageType(type) : type != master)
      return emitOpError() << "argument " << i << " of update must be "
                           << (isState ? "a float" : "of the master's type")
                           << ", got " << type;
  }

  // optimizer_c3
  Operation *updated = update.getTerminator();
  if (TypeRange(updated->getOperandTypes()) !=
      TypeRange(ValueRange(update.getArguments().slice(1, 1 + numStates))))
    return emitOpError() << "update must yield the master and "
                         << countOf(numStates, "state")
                         << " in their types, got ("
                         << updated->getOperandTypes() << ")";
  return success();
}
