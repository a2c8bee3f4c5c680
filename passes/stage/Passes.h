//===- Passes.h - Passes of the stage component -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_STAGE_PASSES_H
#define ZERO_PASSES_STAGE_PASSES_H

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace zero {

/// Removes from |program| what ranks on |coordinates| neither hold nor run.
/// |coordinates| has one coordinate for each axis of stages. Kernels, scalars,
/// slots and the protocol stay.
void selectStage(zrt::ProgramOp program,
                 llvm::ArrayRef<AxisCoordinate> coordinates);

#define GEN_PASS_DECL
#include "passes/stage/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/stage/Passes.h.inc"

} // namespace zero

#endif // ZERO_PASSES_STAGE_PASSES_H
