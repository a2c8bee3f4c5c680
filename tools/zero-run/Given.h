//===- Given.h - A lowered step of a file -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_GIVEN_H
#define ZERO_TOOLS_ZERO_RUN_GIVEN_H

#include "tools/zero-run/Options.h"

namespace zero {

/// Checks that |given| is a lowered step that runs on what |logical|, the step
/// of --against, runs on: mesh, parameters, arguments and results. Sets the
/// mesh of |logical| to that of --mesh. Where |message| is empty on failure,
/// there is a diagnostic.
mlir::LogicalResult checkGiven(mlir::ModuleOp given, mlir::ModuleOp logical,
                               const RunOptions &options, ExitCode &code,
                               std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_GIVEN_H
