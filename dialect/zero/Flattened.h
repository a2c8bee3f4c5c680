//===- Flattened.h - Names for several axes of a mesh together ------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_FLATTENED_H
#define ZERO_DIALECT_ZERO_FLATTENED_H

#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// The mesh of |module| that has views; null if there is none.
MeshOp findFlattened(mlir::ModuleOp module);

/// Writes axes for the names of views, and removes these. Fails where an axis
/// is named twice by that, and where a name has several meanings in the module:
/// parameters belong to no mesh.
mlir::LogicalResult expandFlattened(mlir::ModuleOp module);

} // namespace zero

#endif // ZERO_DIALECT_ZERO_FLATTENED_H
