//===- Model.h - The parameters of a model, from its files ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_MODEL_H
#define ZERO_TOOLS_IMPORT_MODEL_H

#include "tools/recipe/Recipe.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace zero {

/// Reads the parameters of |path|, which is
///   - a list of parameters, as readParameterList takes it,
///   - a file of safetensors, of which only the header is read,
///   - a config.json of transformers,
///   - the index of several such files (*.safetensors.index.json).
/// |tool| names the program, for the hint about stdin.
mlir::LogicalResult readModel(llvm::StringRef tool, llvm::StringRef path,
                              ParameterList &list, ExitCode &code,
                              std::string &message);

/// Adds the parameters of the header of |path|, a file of safetensors.
mlir::LogicalResult readSafetensorsHeader(llvm::StringRef path,
                                          ParameterList &list, ExitCode &code,
                                          std::string &message);

/// Adds the parameters of the files that |index| names, which is the content of
/// |path|. The files are in its folder.
mlir::LogicalResult readSafetensorsIndex(const llvm::json::Object &index,
                                         llvm::StringRef path,
                                         ParameterList &list, ExitCode &code,
                                         std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_MODEL_H
