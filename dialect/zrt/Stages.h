//===- Stages.h - The pipeline stages of a program --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_STAGES_H
#define ZERO_DIALECT_ZRT_STAGES_H

#include "dialect/zrt/ZrtDialect.h"

namespace zrt {

/// One coordinate for each axis of stages.
using Stage = llvm::SmallVector<zero::AxisCoordinate>;

/// The axes over which a buffer of |program| exists on some coordinates only.
llvm::SmallVector<mlir::StringAttr> getStageAxes(ProgramOp program);

/// The stages that differ: each coordinate that a buffer names, and one that no
/// buffer names, if there is one. A program without stages has one stage.
llvm::SmallVector<Stage> enumerateStages(ProgramOp program);

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_STAGES_H
