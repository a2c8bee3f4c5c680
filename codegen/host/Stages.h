//===- Stages.h - One program for each pipeline stage -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_STAGES_H
#define ZERO_CODEGEN_HOST_STAGES_H

#include "codegen/host/Tables.h"

namespace zero {

/// What the ranks of one pipeline stage run.
struct StageProgram {
  /// Where they are, over the axes that have stages, in the order of the mesh.
  llvm::SmallVector<AxisCoordinate> coordinates;
  /// Owns the program, unless it is that of all ranks.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  zrt::ProgramOp program;
  Tables tables;
};

/// The programs of all stages, row-major over their coordinates; that of all
/// ranks where there are no stages. |whole| are the tables of |program|.
mlir::FailureOr<std::vector<StageProgram>> splitStages(zrt::ProgramOp program,
                                                       const Tables &whole);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_STAGES_H
