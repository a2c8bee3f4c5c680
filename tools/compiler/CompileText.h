//===- CompileText.h - A step compiled from texts to texts ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_COMPILER_COMPILETEXT_H
#define ZERO_TOOLS_COMPILER_COMPILETEXT_H

#include "tools/driver/Errors.h"

#include "llvm/Support/MemoryBuffer.h"

#include <optional>
#include <string>

namespace zero {

/// What a client asks for: a step, or a list of parameters and a recipe.
struct CompileRequest {
  std::optional<llvm::StringRef> step, parameters, recipe, options;
};

/// What a client gets.
struct CompileOutput {
  std::string name, step, library, header, plan;
  bool isCached = false; // compiled before
};

struct CompileSettings;

/// Compiles |step| to a library, or finds it in the cache of |settings|.
/// |reference| is as for Compilation::load.
mlir::LogicalResult
compileStepText(const CompileSettings &settings,
                std::unique_ptr<llvm::MemoryBuffer> step,
                std::unique_ptr<llvm::MemoryBuffer> reference,
                CompileOutput &output, Errors &errors);

/// Compiles what |request| says. Reads and leaves no file but that of a cache.
mlir::LogicalResult compileText(const CompileRequest &request,
                                CompileOutput &output, Errors &errors);

} // namespace zero

#endif // ZERO_TOOLS_COMPILER_COMPILETEXT_H
