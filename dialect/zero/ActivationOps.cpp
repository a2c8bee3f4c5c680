//===- ActivationOps.cpp - What pipeline stages send ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Rules.h"
#include "dialect/zero/StorageTypes.h"
#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace zero;

static constexpr int64_t kMaxDims = 8;

LogicalResult ActivationOp::verify() {
  // activation_c1
  RankedTensorType type = getTensorType();
  Type element = type.getElementType();
  bool isWhole = element.isSignlessInteger(8) ||
                 element.isSignlessInteger(32) || element.isSignlessInteger(64);
  if (!isStorageType(element) && !isWhole)
    return emitOpError() << "elements must be " << listStorageTypes(", ")
                         << ", i8, i32 or i64, got " << element;
  if (type.getEncoding())
    return emitOpError() << "must have no encoding, got " << type;
  if (type.getRank() > kMaxDims)
    return emitOpError() << "has " << type.getRank()
                         << " dimensions, expected at most " << kMaxDims;
  auto extents = llvm::make_filter_range(
      type.getShape(), [](int64_t n) { return !ShapedType::isDynamic(n); });
  if (!areExtentsInRange(llvm::to_vector(extents)))
    return emitOpError() << "must have at most " << kMaxElements << " elements";
  // activation_c2
  if (getFrom() == getTo() || int64_t(getFrom()) < 0 || int64_t(getTo()) < 0)
    return emitOpError() << "must go from one pipeline stage to another, got "
                         << int64_t(getFrom()) << " and " << int64_t(getTo());
  return success();
}

/// activation_c3
static LogicalResult verifyEnds(ActivationOp activation, MeshOp mesh) {
  StringRef axis = activation.getAxis();
  std::optional<int64_t> size = mesh.getAxisSize(axis);
  int64_t last = std::max(activation.getFrom(), activation.getTo());
  if (size && last < *size)
    return success();
  InFlightDiagnostic diag = activation.emitOpError();
  if (size)
    diag << "needs " << axis << " = " << last << ", and '" << axis
         << "' has size " << *size;
  else
    diag << "is over '" << axis << "', which is no axis of the mesh";
  diag.attachNote(mesh.getLoc()) << "the mesh is @" << mesh.getSymName();
  return diag;
}

LogicalResult zero::verifyActivations(Operation *user, MeshOp mesh) {
  llvm::MapVector<StringAttr, SmallVector<ActivationOp>> byAxis;
  for (Operation &op : user->getParentRegion()->front())
    if (auto activation = dyn_cast<ActivationOp>(op)) {
      // One that stands behind its user has not been verified yet.
      if (failed(mlir::verify(activation)) ||
          failed(verifyEnds(activation, mesh)))
        return failure();
      byAxis[activation.getAxisAttr()].push_back(activation);
    }
  // activation_c4
  for (auto &[axis, activations] : byAxis) {
    llvm::BitVector reached(*mesh.getAxisSize(axis));
    for (ActivationOp activation : activations) {
      reached.set(activation.getFrom());
      reached.set(activation.getTo());
    }
    int alone = reached.find_first_unset();
    if (alone < 0)
      continue;
    InFlightDiagnostic diag =
        user->emitOpError()
        << "no activation comes to or from pipeline stage " << axis.getValue()
        << " = " << alone << "; declare one, or make '" << axis.getValue()
        << "' smaller";
    diag.attachNote(activations.front().getLoc())
        << "other stages have neighbours";
    return diag;
  }
  return success();
}
