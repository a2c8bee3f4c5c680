//===- Main.h - zero-run as a function --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_MAIN_H
#define ZERO_TOOLS_ZERO_RUN_MAIN_H

#include "tools/zero-run/Engine.h"
#include "tools/zero-run/Groups.h"

namespace zero {

/// Changes how |scheduled| is compiled and run.
using CompiledSetup =
    std::function<void(mlir::ModuleOp scheduled, CompiledOptions &options)>;

/// Runs zero-run and returns its exit code. |processes| are the ranks of a
/// compiled step; null: ranks are threads of this process. |setUp|, which may
/// be null, is called for each compiled step.
int runTool(int argc, char **argv, const Processes *processes,
            const CompiledSetup &setUp = nullptr);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_MAIN_H
