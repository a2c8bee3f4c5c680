//===- Config.cpp - Configurations of DeepSpeed -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/tools/Steps.h"
#include "tools/import/Lint.h"

using namespace zero;
using namespace zero_fuzz;

static constexpr llvm::StringLiteral kModel =
    R"([{"name": "embed", "shape": [16, 4]}, {"name": "h.0.w", "shape": [4, 4]},
        {"name": "h.0.bias", "shape": [4]}, {"name": "h.1.w", "shape": [4, 4]}])";

/// What lint finds, and what an import writes. An import fails with an error.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const InputFile config("ds_config.json"), model("model.json");
  static const bool isWritten = (model.write(kModel), true);
  (void)isWritten;
  config.write({reinterpret_cast<const char *>(data), size});
  ImportRequest request;
  request.tool = "fuzz-config";
  request.config = config.path;
  request.model = model.path;
  request.mesh = MeshAxes{{"dp", 4}};
  request.name = "train";
  Errors errors("fuzz-config");
  errors.keepSilently();
  std::optional<llvm::json::Value> root =
      readConfigFile(request.tool, request.config, {}, errors);
  require(root.has_value() == errors.empty(), "an error or a configuration",
          "");
  if (!root)
    return 0;
  const llvm::json::Object *object = root->getAsObject();
  ImportedStep linted, step;
  if (object)
    for (const Finding &finding : lintConfig(request, *object, linted, errors))
      require(!finding.what.empty(), "a finding that says what happens", "");
  Errors imported("fuzz-config");
  imported.keepSilently();
  bool failed = mlir::failed(importStep(request, step, imported));
  require(failed == !imported.empty(), "an error exactly where it failed", "");
  if (!failed)
    requireStep(step.text->getBuffer());
  return 0;
}
