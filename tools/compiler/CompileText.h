//===- CompileText.h - A step compiled from texts to texts ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_COMPILER_COMPILETEXT_H
#define ZERO_TOOLS_COMPILER_COMPILETEXT_H

#include "tools/driver/Errors.h"

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
};

/// Compiles what |request| says. Reads and leaves no file.
mlir::LogicalResult compileText(const CompileRequest &request,
                                CompileOutput &output, Errors &errors);

} // namespace zero

#endif // ZERO_TOOLS_COMPILER_COMPILETEXT_H
