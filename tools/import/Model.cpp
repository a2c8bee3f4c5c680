//===- Model.cpp - The parameters of a model, from its files --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Model.h"
#include "tools/import/HuggingFace.h"
#include "tools/import/ReadJson.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

LogicalResult zero::readModel(StringRef tool, StringRef path,
                              ParameterList &list, ExitCode &code,
                              std::string &message) {
  if (path.ends_with(".safetensors"))
    return readSafetensorsHeader(path, list, code, message);
  code = ExitCode::environment;
  std::unique_ptr<llvm::MemoryBuffer> file = openInput(tool, path, message);
  if (!file)
    return failure();
  code = ExitCode::failed;
  StringRef name = describeInput(path);
  std::optional<json::Value> root = readJson(file->getBuffer(), name, message);
  if (!root)
    return failure();
  const json::Object *object = root->getAsObject();
  if (object && object->get("weight_map"))
    return readSafetensorsIndex(*object, path, list, code, message);
  if (object && object->get("model_type"))
    return readHuggingFace(*object, name, list, message);
  return readParameterList(file->getBuffer(), name, list, message);
}
