//===- Parameters.cpp - Do gradients of all parameters arrive? ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only the whole module shows whether a gradient of a parameter arrives: in
// some step, or in a bucket. A symbol without users is valid IR. So tools and
// passes check this, and no verifier does.
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace zrt;

/// The names of parameters whose gradients arrive.
static llvm::DenseSet<Attribute> findReached(ModuleOp module) {
  llvm::DenseSet<Attribute> reached, buckets;
  module.walk([&](zero::BackwardOp backward) {
    for (Attribute source : backward.getSources()) {
      reached.insert(source);
      buckets.insert(source);
    }
  });
  module.walk([&](BucketTableOp arrivals) {
    buckets.insert(arrivals.getBucketAttr());
  });
  bool hasPrograms = !module.getOps<ProgramOp>().empty();
  for (auto bucket : module.getOps<zero::BucketOp>()) {
    // The program of one pipeline stage has no arrivals of other stages.
    bool isElsewhere =
        hasPrograms && !bucket.getValueType().getPresent().empty();
    if (isElsewhere || buckets.contains(FlatSymbolRefAttr::get(bucket)))
      reached.insert(bucket.getMembers().begin(), bucket.getMembers().end());
  }
  return reached;
}

/// Checks that |mesh| has the axes and stages of |value|, the type of |op|, and
/// that their sizes divide its extents. Parameters that are not frozen are
/// checked at their arrivals.
static LogicalResult
verifyOnMesh(Operation *op, const Twine &what, zero::ValueType value,
             zero::MeshOp mesh,
             llvm::function_ref<InFlightDiagnostic(Operation *)> emitError) {
  auto emit = [&]() {
    return emitError(op) << what << " @"
                         << SymbolTable::getSymbolName(op).getValue();
  };
  FailureOr<zero::ValueType> type =
      mesh.expandFlattened(value, [&] { return emit() << " "; });
  if (failed(type))
    return failure();
  for (const zero::AxisPlacement &p : type->getPlacements())
    if (!mesh.getAxisSize(p.axis))
      return emit() << " is sharded over " << p.axis
                    << ", which is no axis of mesh @" << mesh.getSymName();
  for (const zero::AxisCoordinate &c : type->getPresent())
    if (c.coordinate >= mesh.getAxisSize(c.axis).value_or(0))
      return emit() << " is on coordinate " << c.coordinate << " of " << c.axis
                    << ", which mesh @" << mesh.getSymName()
                    << " does not have";
  for (auto [dim, extent] : llvm::enumerate(type->getShape()))
    if (int64_t ranks = mesh.getNumRanks(type->getAxesOfDim(dim));
        extent % ranks != 0)
      return emit() << " has " << zero::countOf(extent, "element")
                    << " in dimension " << dim << ", sharded over "
                    << zero::countOf(ranks, "rank");
  return success();
}

LogicalResult zrt::verifyParameters(
    ModuleOp module,
    llvm::function_ref<InFlightDiagnostic(Operation *)> emitError) {
  Operation *user = nullptr;
  FlatSymbolRefAttr meshName;
  for (auto step : module.getOps<zero::StepOp>()) {
    user = step;
    meshName = step.getMeshAttr();
  }
  for (auto program : module.getOps<ProgramOp>()) {
    user = program;
    meshName = program.getMeshAttr();
  }
  if (!user)
    return success();
  auto mesh = module.lookupSymbol<zero::MeshOp>(meshName.getAttr());
  llvm::DenseSet<Attribute> reached = findReached(module);
  SmallVector<zero::ParameterOp> unreached;
  for (auto parameter : module.getOps<zero::ParameterOp>())
    if (parameter.getFrozen()) {
      if (mesh &&
          failed(verifyOnMesh(parameter, "parameter", parameter.getValueType(),
                              mesh, emitError)))
        return failure();
    } else if (!reached.contains(FlatSymbolRefAttr::get(parameter))) {
      unreached.push_back(parameter);
    }
  for (auto bucket : module.getOps<zero::FrozenBucketOp>())
    if (mesh && failed(verifyOnMesh(bucket, "frozen bucket",
                                    bucket.getValueType(), mesh, emitError)))
      return failure();
  if (unreached.empty())
    return success();
  // One error for all parameters.
  InFlightDiagnostic diag = emitError(unreached.front())
                            << "no gradient of @"
                            << unreached.front().getSymName()
                            << " arrives; a frozen parameter is left out of "
                               "the step, or declared 'frozen'";
  diag.attachNote(user->getLoc()) << "the step is here";
  if (unreached.size() > 1)
    diag.attachNote(unreached[1].getLoc())
        << "nor of " << unreached.size() - 1 << " more, of which @"
        << unreached[1].getSymName() << " is the next";
  return diag;
}
