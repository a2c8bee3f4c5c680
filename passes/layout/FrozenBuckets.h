//===- FrozenBuckets.h - Lays frozen parameters out -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LAYOUT_FROZENBUCKETS_H
#define ZERO_PASSES_LAYOUT_FROZENBUCKETS_H

#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// A bucket for the frozen parameters of each unit, of each type and placement.
/// Slices over |summed| are equal.
void declareFrozenBuckets(mlir::ModuleOp module, MeshOp mesh,
                          llvm::ArrayRef<mlir::StringAttr> summed);

} // namespace zero

#endif // ZERO_PASSES_LAYOUT_FROZENBUCKETS_H
