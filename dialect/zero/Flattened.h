//===- Flattened.h - Names for several axes of a mesh -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_FLATTENED_H
#define ZERO_DIALECT_ZERO_FLATTENED_H

#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// The mesh of |module| that has flattened axes; null if there is none.
MeshOp findFlattened(mlir::ModuleOp module);

/// Replaces flattened axes by their axes and removes them. Fails if a type then
/// names an axis twice. Fails if a name has several meanings in the module,
/// since parameters belong to no mesh.
mlir::LogicalResult expandFlattened(mlir::ModuleOp module);

} // namespace zero

#endif // ZERO_DIALECT_ZERO_FLATTENED_H
