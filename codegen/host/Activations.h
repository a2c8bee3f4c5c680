//===- Activations.h - What stages send, in tables and plan -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_ACTIVATIONS_H
#define ZERO_CODEGEN_HOST_ACTIVATIONS_H

#include "codegen/host/Tables.h"

#include "llvm/Support/JSON.h"

namespace zero {

/// Fills the activations of |tables|, in the order in which |module| declares
/// them, because users see these numbers. |tables| already has the mesh.
void addActivations(mlir::ModuleOp module, Tables &tables);

/// Describes the activations of |module|, with the bytes of one micro-batch if
/// they are known.
llvm::json::Array describeActivations(mlir::ModuleOp module);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_ACTIVATIONS_H
