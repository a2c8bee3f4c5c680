//===- Main.h - zero-run as a function ---------------------------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_MAIN_H
#define ZERO_TOOLS_ZERO_RUN_MAIN_H

#include "tools/zero-run/Groups.h"

namespace zero {

/// Runs zero-run and returns its exit code. |processes| are the ranks of a
/// compiled step; null: ranks are threads of this process.
int runTool(int argc, char **argv, const Processes *processes);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_MAIN_H
