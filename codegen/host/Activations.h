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

/// Fills the activations of |tables|, whose mesh has been read, in the order in
/// which |module| declares them: their numbers are the user's.
void addActivations(mlir::ModuleOp module, Tables &tables);

/// Those of |module|, with the bytes of one micro-batch where they are known.
llvm::json::Array describeActivations(mlir::ModuleOp module);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_ACTIVATIONS_H
