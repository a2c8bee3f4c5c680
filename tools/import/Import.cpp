//===- Import.cpp - A step from a configuration and a model ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"
#include "tools/import/Model.h"
#include "tools/import/ReadJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

/// Puts the value of "KEY=VALUE" into |root|. A value that is not JSON is a
/// string, so that a user does not quote twice.
static LogicalResult change(StringRef text, json::Object &root,
                            std::string &message) {
  auto [path, value] = text.split('=');
  if (path.empty() || path.size() == text.size()) {
    message = "--set must be KEY=VALUE, such as "
              "--set=optimizer.params.lr=3e-4, got '" +
              cutText(text) + "'";
    return failure();
  }
  std::string ignored;
  std::optional<json::Value> read = readJson(value, "--set", ignored);
  if (!read && !json::isUTF8(value)) {
    message = "--set=" + cutText(path) + ": is not UTF-8";
    return failure();
  }
  json::Object *object = &root;
  StringRef rest = path;
  while (rest.contains('.')) {
    StringRef key;
    std::tie(key, rest) = rest.split('.');
    json::Value &inner = (*object)[key];
    if (!inner.getAsObject())
      inner = json::Object();
    object = inner.getAsObject();
  }
  (*object)[rest] = read ? std::move(*read) : json::Value(value.str());
  return success();
}

std::optional<json::Value> zero::readConfigFile(StringRef tool, StringRef path,
                                                ArrayRef<std::string> changes,
                                                Errors &errors) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInput(tool, path, message);
  if (!file) {
    errors.add(ExitCode::environment, message);
    return std::nullopt;
  }
  StringRef name = describeInput(path);
  std::optional<json::Value> root = readJson(file->getBuffer(), name, message);
  if (root && !root->getAsObject()) {
    message =
        (name + ": must be an object of keys, got " + cutValue(*root)).str();
    root.reset();
  }
  if (!root) {
    errors.add(ExitCode::failed, message);
    return std::nullopt;
  }
  for (const std::string &text : changes)
    if (failed(change(text, *root->getAsObject(), message))) {
      errors.add(ExitCode::usage, message);
      return std::nullopt;
    }
  return root;
}

/// The text before the step: every choice, and the options.
static std::string describe(const ImportRequest &request,
                            const ImportedStep &step) {
  auto getName = [](StringRef path) {
    return cutText(llvm::sys::path::filename(describeInput(path)));
  };
  std::string text =
      "// The step of " + getName(request.config) +
      ", a configuration of DeepSpeed, for\n// " + getName(request.model) +
      ", which has " + std::to_string(step.numParameters) + " parameters of " +
      std::to_string(step.numElements) + " elements in all.\n//\n";
  for (const Decision &decision : step.config.decisions)
    text += "// " + cutText(decision.key) +
            (decision.value.empty() ? " (left out)" : " = " + decision.value) +
            ": " + decision.text + "\n";
  text += "//\n//   zero-compile";
  for (const auto &[name, value] : step.getOptions())
    text += " --" + name + "=" + value;
  return text + "\n\n";
}

std::vector<std::pair<std::string, std::string>>
ImportedStep::getOptions() const {
  std::vector<std::pair<std::string, std::string>> options;
  std::string axes = llvm::join(
      llvm::map_range(mesh,
                      [](const auto &axis) {
                        return axis.first + "=" + std::to_string(axis.second);
                      }),
      ":");
  options.push_back({"mesh", axes});
  options.push_back({"stage", std::to_string(config.stage)});
  if (config.isOffloaded)
    options.push_back({"offload", config.areParametersOffloaded ? "parameters"
                                                                : "optimizer"});
  if (config.bucketBytes)
    options.push_back({"bucket-bytes", std::to_string(*config.bucketBytes)});
  return options;
}

/// The number of data-parallel ranks of |mesh|; nothing where there is no mesh.
static std::optional<int64_t> countRanks(const std::optional<MeshAxes> &mesh) {
  if (!mesh)
    return std::nullopt;
  int64_t count = 1;
  for (const auto &axis : *mesh)
    if (axis.first != kTensorAxis && axis.first != kPipelineAxis &&
        __builtin_mul_overflow(count, axis.second, &count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

/// The size of |name| in |mesh|; 1 where it has no such axis.
static int64_t getAxisSize(const std::optional<MeshAxes> &mesh,
                           StringRef name) {
  for (const auto &axis : mesh.value_or(MeshAxes()))
    if (axis.first == name)
      return axis.second;
  return 1;
}

void zero::readConfig(const ImportRequest &request, ConfigReader &reader) {
  readConfig(reader, countRanks(request.mesh),
             getAxisSize(request.mesh, kTensorAxis));
}

LogicalResult zero::writeImportedStep(const ImportRequest &request,
                                      ImportedStep &step, ExitCode &code,
                                      std::string &message) {
  // The ranks that share a batch and divide parameters.
  int64_t numTensorRanks = getAxisSize(request.mesh, kTensorAxis);
  int64_t numStages = getAxisSize(request.mesh, kPipelineAxis);
  step.mesh =
      request.mesh.value_or(MeshAxes{{"dp", step.config.numRanks.value_or(1)}});
  int64_t numExpertRanks = getAxisSize(request.mesh, kExpertAxis);
  if (numTensorRanks > 1)
    step.config.recipe.tensorAxis = kTensorAxis.str();
  if (numExpertRanks > 1)
    step.config.recipe.expertAxis = kExpertAxis.str();
  ParameterList list;
  std::string text;
  code = ExitCode::failed;
  if (failed(readModel(request.tool, request.model, list, code, message)) ||
      failed(adaptParameters(request, step.config, list, message)) ||
      (numTensorRanks > 1 &&
       failed(divideParameters(request, numTensorRanks, list, message))) ||
      failed(
          assignExperts(request, numExpertRanks, step.config, list, message)) ||
      failed(assignStages(request, numStages, step.config, list, message)) ||
      (step.config.stage == 3 &&
       failed(assignUnits(step.config, numTensorRanks, numExpertRanks, list,
                          message))) ||
      failed(writeListedStep(step.config.recipe, list, step.mesh, request.name,
                             text, code, message)))
    return failure();
  step.numParameters = list.parameters.size();
  for (const ListedParameter &parameter : list.parameters)
    step.numElements += countElements(parameter);
  step.text = llvm::MemoryBuffer::getMemBufferCopy(
      describe(request, step) + text, "<the step that was written>");
  return success();
}

LogicalResult zero::importStep(const ImportRequest &request, ImportedStep &step,
                               Errors &errors) {
  std::optional<json::Value> root =
      readConfigFile(request.tool, request.config, request.changes, errors);
  if (!root)
    return failure();
  std::vector<ConfigError> wrong;
  ConfigReader reader(*root->getAsObject(), step.config, wrong);
  readConfig(request, reader);
  for (const ConfigError &error : wrong)
    errors.add(ExitCode::failed, describeInput(request.config) + ": '" +
                                     cutText(error.key) + "' " + error.text);
  if (!wrong.empty())
    return failure();
  ExitCode code;
  std::string message;
  if (succeeded(writeImportedStep(request, step, code, message)))
    return success();
  errors.add(code, message);
  return failure();
}
