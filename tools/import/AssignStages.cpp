//===- AssignStages.cpp - The layers of a model on pipeline stages --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"

#include "dialect/zero/CountOf.h"
#include "tools/import/Layers.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;
using namespace zero;

namespace {
class StageAssigner {
public:
  StageAssigner(const ImportRequest &request, int64_t numStages,
                ParameterList &list, std::string &message)
      : request(request), numStages(numStages), list(list), message(message) {}

  /// Puts all parameters on stages, unless the list has put one there.
  LogicalResult run();
  /// What each stage has.
  void describe(std::vector<Decision> &decisions) const;

private:
  LogicalResult fail(const Twine &text) {
    message = text.str();
    return failure();
  }
  /// The number of layers of each stage, of |numLayers| in all.
  LogicalResult divideLayers(int64_t numLayers, std::vector<int64_t> &counts);
  LogicalResult assignLayers();
  /// Embeddings are first, and a norm and a head are last.
  void assignOthers();
  /// Puts the parameters that match "PATTERN=STAGE" there.
  LogicalResult assignPattern(StringRef text);
  LogicalResult readStages(StringRef text, std::vector<int64_t> &stages);

  const ImportRequest &request;
  int64_t numStages;
  ParameterList &list;
  std::string &message;
};
} // namespace

LogicalResult StageAssigner::divideLayers(int64_t numLayers,
                                          std::vector<int64_t> &counts) {
  if (request.pipelineLayers.empty()) {
    if (numLayers < numStages)
      return fail("the model has " + Twine(numLayers) +
                  " layers by the names of its parameters, and the mesh has " +
                  kPipelineAxis + "=" + Twine(numStages) +
                  "; say where each parameter is, with "
                  "--pipeline-stage='PATTERN=N,...'");
    for (int64_t stage = 0; stage < numStages; ++stage)
      counts.push_back(numLayers / numStages + (stage < numLayers % numStages));
    return success();
  }
  auto wrong = [&] {
    return fail("--pipeline-layers must be a number of layers for each of " +
                Twine(numStages) + " pipeline stages, " + Twine(numLayers) +
                " in all, such as 8:8:8:8, got '" + request.pipelineLayers +
                "'");
  };
  SmallVector<StringRef> parts;
  StringRef(request.pipelineLayers).split(parts, ':');
  int64_t left = numLayers;
  for (StringRef part : parts) {
    int64_t count = 0;
    if (part.getAsInteger(10, count) || count < 0 || count > left)
      return wrong();
    left -= count;
    counts.push_back(count);
  }
  return left == 0 && int64_t(counts.size()) == numStages ? success() : wrong();
}

LogicalResult StageAssigner::assignLayers() {
  // The lists of layers in the order of the parameters, such as those of an
  // encoder before those of a decoder.
  llvm::MapVector<StringRef, std::set<int64_t>> numbers;
  for (const ListedParameter &parameter : list.parameters)
    if (std::optional<NamedLayer> layer = findLayer(parameter.name))
      numbers[layer->list].insert(layer->number);
  int64_t numLayers = 0;
  for (const auto &entry : numbers)
    numLayers += entry.second.size();
  std::vector<int64_t> counts;
  // Names may have no layers if patterns say where each parameter is.
  bool isByPatterns = numLayers == 0 && request.pipelineLayers.empty() &&
                      !request.pipelineStages.empty();
  if (isByPatterns)
    return success();
  if (failed(divideLayers(numLayers, counts)))
    return failure();
  std::map<std::pair<StringRef, int64_t>, int64_t> stageOf;
  int64_t stage = 0, left = counts[0];
  for (const auto &[layers, members] : numbers)
    for (int64_t number : members) {
      while (left == 0)
        left = counts[++stage];
      --left;
      stageOf[{layers, number}] = stage;
    }
  for (ListedParameter &parameter : list.parameters)
    if (std::optional<NamedLayer> layer = findLayer(parameter.name))
      parameter.stages = {stageOf.at({layer->list, layer->number})};
  assignOthers();
  return success();
}

/// Whether |name| is of an embedding of tokens or positions.
static bool isEmbedding(StringRef name) {
  StringRef module = name.rsplit('.').first;
  module = module.drop_front(module.rfind('.') + 1);
  return module.contains("embed") || module == "wte" || module == "wpe";
}

void StageAssigner::assignOthers() {
  auto isHead = [](const ListedParameter &parameter) {
    return !findLayer(parameter.name) && !isEmbedding(parameter.name) &&
           parameter.shape.size() == 2;
  };
  bool hasHead = llvm::any_of(list.parameters, isHead);
  for (ListedParameter &parameter : list.parameters) {
    if (findLayer(parameter.name))
      continue;
    bool isFirst = isEmbedding(parameter.name);
    parameter.stages = {isFirst ? 0 : numStages - 1};
    StringRef name = parameter.name;
    // The head of a model that has none is the embedding of tokens.
    if (!hasHead &&
        (name.ends_with("embed_tokens.weight") || name.ends_with("wte.weight")))
      parameter.stages = {0, numStages - 1};
  }
}

LogicalResult StageAssigner::readStages(StringRef text,
                                        std::vector<int64_t> &stages) {
  SmallVector<StringRef> parts;
  text.split(parts, '+');
  for (StringRef part : parts) {
    int64_t stage = 0;
    if (part.getAsInteger(10, stage) || stage < 0 || stage >= numStages ||
        llvm::is_contained(stages, stage))
      return failure();
    stages.push_back(stage);
  }
  llvm::sort(stages);
  return success();
}

LogicalResult StageAssigner::assignPattern(StringRef text) {
  auto [pattern, numbers] = text.rsplit('=');
  std::vector<int64_t> stages;
  if (pattern.empty() || failed(readStages(numbers, stages)))
    return fail("--pipeline-stage must be PATTERN=N or, of a tied parameter, "
                "PATTERN=N+M, with pipeline stages from 0 to " +
                Twine(numStages - 1) + ", got '" + text + "'");
  return forEachMatch(
      "pipeline-stage", pattern, list,
      [&](ListedParameter &parameter) { parameter.stages = stages; }, message);
}

LogicalResult StageAssigner::run() {
  bool isListed =
      llvm::any_of(list.parameters, [](const ListedParameter &parameter) {
        return !parameter.stages.empty();
      });
  if (!isListed && failed(assignLayers()))
    return failure();
  for (const std::string &text : request.pipelineStages)
    if (failed(assignPattern(text)))
      return failure();
  for (const ListedParameter &parameter : list.parameters)
    if (parameter.stages.empty())
      return fail("parameter '" + parameter.name +
                  "' is on no pipeline stage, and others are; add "
                  "--pipeline-stage='" +
                  parameter.name + "=N'");
  return success();
}

void StageAssigner::describe(std::vector<Decision> &decisions) const {
  for (int64_t stage = 0; stage < numStages; ++stage) {
    std::set<StringRef> layers;
    uint64_t numParameters = 0, numElements = 0;
    for (const ListedParameter &parameter : list.parameters) {
      if (!llvm::is_contained(parameter.stages, stage))
        continue;
      ++numParameters;
      numElements += countElements(parameter);
      if (std::optional<NamedLayer> layer = findLayer(parameter.name))
        layers.insert(layer->path);
    }
    decisions.push_back({"pipeline stage " + std::to_string(stage),
                         countOf(layers.size(), "layer"),
                         countOf(numParameters, "parameter") + " of " +
                             countOf(numElements, "element")});
  }
}

LogicalResult zero::assignStages(const ImportRequest &request,
                                 int64_t numStages, ImportedConfig &config,
                                 ParameterList &list, std::string &message) {
  if (numStages == 1) {
    if (request.pipelineStages.empty() && request.pipelineLayers.empty())
      return success();
    message = (request.pipelineStages.empty() ? "--pipeline-layers"
                                              : "--pipeline-stage") +
              std::string(" is for a mesh with pipeline stages, such as "
                          "--mesh=pp=2:dp=4");
    return failure();
  }
  StageAssigner assigner(request, numStages, list, message);
  if (failed(assigner.run()))
    return failure();
  assigner.describe(config.decisions);
  return success();
}
