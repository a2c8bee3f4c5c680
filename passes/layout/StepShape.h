//===- StepShape.h - The paths of gradients through a step ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LAYOUT_STEPSHAPE_H
#define ZERO_PASSES_LAYOUT_STEPSHAPE_H

#include "dialect/zero/ZeroDialect.h"

#include "llvm/ADT/MapVector.h"

namespace zero {

/// The path of one parameter's gradient through a logical step. Parameters with
/// equal paths can share a bucket.
struct GradientPath {
  BackwardOp backward;
  ReduceOp reduce;
  /// The clips that the gradient goes through, in their order.
  llvm::SmallVector<ClipOp, 1> clips;
  /// The norms that count the gradient, in their order, each with the number of
  /// clips before it.
  llvm::SmallVector<std::pair<NormOp, unsigned>, 1> norms;
  mlir::StringAttr optimizer;
  /// The type of the arriving gradient, as a bucket row without elements. Each
  /// axis that shards the parameter has a dimension, in the order of the mesh.
  ValueType arrivalType;
  mlir::Type storageType;
  /// The gradient is complete at the end of a backward pass, and not before.
  bool isOpenToTheEnd = false;
  UnitOp unit; // null: of no unit

  bool operator==(const GradientPath &other) const {
    return backward == other.backward && reduce == other.reduce &&
           norms == other.norms && clips == other.clips &&
           optimizer == other.optimizer && arrivalType == other.arrivalType &&
           storageType == other.storageType &&
           isOpenToTheEnd == other.isOpenToTheEnd && unit == other.unit;
  }
};

/// The parts of a step that zero-assign-layout reads.
struct StepShape {
  StepOp step;
  MeshOp mesh;
  /// Parameters in order of declaration, each with its path.
  llvm::MapVector<ParameterOp, GradientPath> paths;
  /// The update of each parameter.
  llvm::DenseMap<ParameterOp, UpdateOp> updates;
};

/// The part of a parameter of type |type| that is in one row of a bucket,
/// without elements.
ValueType getRowType(ValueType type, MeshOp mesh);

/// Whether |op| sums scalars that the caller passes to apply, and no gradients.
bool isOfScalars(ReduceOp op);

/// Reads |step|. Emits an error at a part that cannot be laid out.
mlir::FailureOr<StepShape> readStep(StepOp step,
                                    mlir::SymbolTableCollection &symbols);

} // namespace zero

#endif // ZERO_PASSES_LAYOUT_STEPSHAPE_H
