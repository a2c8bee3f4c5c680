//===- Stages.h - One program for each pipeline stage -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_STAGES_H
#define ZERO_CODEGEN_HOST_STAGES_H

#include "codegen/host/Tables.h"

namespace zero {

/// The program of the ranks of one pipeline stage.
struct StageProgram {
  /// The coordinates of the stage over the axes that have stages, in the order
  /// of the mesh.
  llvm::SmallVector<AxisCoordinate> coordinates;
  /// Owns the program. Null if it is the program of all ranks.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  zrt::ProgramOp program;
  Tables tables;
};

/// The programs of all pipeline stages, row-major over their coordinates.
/// Without pipeline stages, the program of all ranks. |whole| are the tables of
/// |program|.
mlir::FailureOr<std::vector<StageProgram>> splitStages(zrt::ProgramOp program,
                                                       const Tables &whole);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_STAGES_H
