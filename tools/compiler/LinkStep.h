//===- LinkStep.h - A compiled step as a library ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_COMPILER_LINKSTEP_H
#define ZERO_TOOLS_COMPILER_LINKSTEP_H

#include "codegen/library/Compile.h"
#include "tools/driver/Errors.h"

namespace zero {

/// Links |step| to the library |path|, and compares the library with the
/// programs that it was compiled from, as far as this machine can run it.
/// |validated| is the part of the plan on what was compared. |code| and
/// |message| describe an error.
mlir::LogicalResult linkStep(const CompiledStep &step, llvm::StringRef path,
                             llvm::json::Object &validated, ExitCode &code,
                             std::string &message);

/// The same to |library|, the content of the file. No file is left.
mlir::LogicalResult linkStepInMemory(const CompiledStep &step,
                                     std::string &library,
                                     llvm::json::Object &validated,
                                     ExitCode &code, std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_COMPILER_LINKSTEP_H
