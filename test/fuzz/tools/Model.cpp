//===- Model.cpp - Models: lists, headers of safetensors, config.json ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Model.h"
#include "test/fuzz/tools/Steps.h"

using namespace zero;
using namespace zero_fuzz;

/// The first byte chooses the name of the file.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const InputFile files[] = {
      InputFile("model.safetensors"), InputFile("config.json"),
      InputFile("model.safetensors.index.json"), InputFile("list.json")};
  if (size == 0)
    return 0;
  const InputFile &file = files[data[0] % std::size(files)];
  file.write({reinterpret_cast<const char *>(data) + 1, size - 1});
  ParameterList list;
  ExitCode code;
  std::string message;
  bool failed =
      mlir::failed(readModel("fuzz-model", file.path, list, code, message));
  requireMessage(failed, message);
  if (failed || list.parameters.size() > kMostParameters)
    return 0;
  for (ListedParameter &parameter : list.parameters)
    if (parameter.gradient.empty()) // as an import does
      parameter.gradient = parameter.dtype;
  Recipe recipe;
  recipe.optimizer = *findOptimizer("lion");
  std::string text;
  failed = mlir::failed(
      writeListedStep(recipe, list, {{"dp", 2}}, "train", text, code, message));
  requireMessage(failed, message);
  if (!failed)
    requireStep(text);
  return 0;
}
