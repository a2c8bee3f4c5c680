//===- ProgramTables.h - A scheduled program in lines of text ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_PROGRAMTABLES_H
#define ZERO_CODEGEN_VALIDATE_PROGRAMTABLES_H

#include "dialect/zrt/ZrtDialect.h"
#include "zero_rt/library.h"

#include <string>
#include <vector>

namespace zero {

/// What a compiled library must be like, besides the program.
struct ExpectedLibrary {
  std::string cpuFeatures;
  bool hasGpuCode = false;
  bool hasShapes = true; // of parameters: in the first stage
  /// The axes of the pipeline stages, in the order of the mesh.
  llvm::SmallVector<mlir::StringAttr> stageAxes;
  /// What apply demands of each input, for all stages.
  llvm::SmallVector<zero_rt_input_check> inputChecks;
};

/// The lines that describeLibrary has for a library of |program|, read from the
/// IR alone.
std::vector<std::string> describeProgram(zrt::ProgramOp program,
                                         const ExpectedLibrary &expected);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_PROGRAMTABLES_H
