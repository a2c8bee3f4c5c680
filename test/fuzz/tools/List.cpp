//===- List.cpp - Lists of parameters and recipes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/tools/Steps.h"

using namespace zero;
using namespace zero_fuzz;

/// The first line is a recipe, or JSON without line breaks, and the others are
/// the list.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto [first, rest] =
      llvm::StringRef(reinterpret_cast<const char *>(data), size).split('\n');
  Recipe recipe;
  ParameterList list;
  ExitCode code;
  std::string message;
  bool failed =
      mlir::failed(readRecipe(first, /*open=*/nullptr, recipe, code, message));
  requireMessage(failed, message);
  if (failed)
    return 0;
  failed = mlir::failed(readParameterList(rest, "list.json", list, message));
  requireMessage(failed, message);
  if (failed || list.parameters.size() > kMostParameters)
    return 0;
  for (const MeshAxes &mesh : {MeshAxes{{"dp", 2}}, {{"pp", 2}, {"dp", 1}}}) {
    std::string text;
    failed = mlir::failed(
        writeListedStep(recipe, list, mesh, "train", text, code, message));
    requireMessage(failed, message);
    if (failed)
      return 0;
    requireStep(text);
  }
  return 0;
}
