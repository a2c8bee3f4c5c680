//===- AssignUnits.cpp - The layers of a model as units of stage 3 --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"
#include "tools/import/Layers.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace zero;

/// Puts the layers of each list of modules in the order of their numbers, in
/// which a forward pass uses them. A safetensors file may have layer 10 before
/// layer 2. Units that follow each other in the step can be unsharded at once.
static void orderLayers(std::vector<ListedParameter> &parameters) {
  std::map<std::string, std::vector<size_t>> places;
  for (auto [i, parameter] : llvm::enumerate(parameters))
    if (std::optional<NamedLayer> layer = findLayer(parameter.name))
      places[layer->list.str()].push_back(i);
  for (const auto &indices : llvm::make_second_range(places)) {
    // Parameters of one layer keep their order.
    std::multimap<int64_t, ListedParameter> byNumber;
    for (size_t i : indices)
      byNumber.emplace(findLayer(parameters[i].name)->number, parameters[i]);
    for (auto [i, entry] : llvm::zip_equal(indices, byNumber))
      parameters[i] = std::move(entry.second);
  }
}

/// The elements of |parameter| that a rank has.
static int64_t countPart(const ListedParameter &parameter,
                         int64_t numTensorRanks, int64_t numExpertRanks) {
  int64_t count = 1;
  for (int64_t extent : parameter.shape)
    if (__builtin_mul_overflow(count, extent, &count))
      return std::numeric_limits<int64_t>::max();
  if (parameter.shardedDim)
    count /= numTensorRanks;
  return parameter.isExpert ? count / numExpertRanks : count;
}

LogicalResult zero::assignUnits(const ImportedConfig &config,
                                int64_t numTensorRanks, int64_t numExpertRanks,
                                ParameterList &list, std::string &message) {
  auto hasUnit = [](const ListedParameter &parameter) {
    return !parameter.unit.empty();
  };
  if (!config.mostPersistent && !list.hiddenSize) {
    message = ("'" + kPersistenceKey +
               "' is \"auto\", which Hugging Face's Trainer replaces by 10 "
               "times the hidden size, and only a config.json of transformers "
               "has that; add --set=" +
               kPersistenceKey + "=100000")
                  .str();
    return failure();
  }
  int64_t most =
      config.mostPersistent ? *config.mostPersistent : 10 * *list.hiddenSize;
  if (llvm::none_of(list.parameters, hasUnit)) {
    orderLayers(list.parameters);
    for (ListedParameter &parameter : list.parameters)
      if (std::optional<NamedLayer> layer = findLayer(parameter.name))
        parameter.unit = layer->path.str();
  }
  if (llvm::none_of(list.parameters, hasUnit)) {
    message = "stage 3 shards the layers of a model, and no name of a "
              "parameter has the number of a layer, such as "
              "'layers.3.fc.weight'; write the \"unit\" of each parameter into "
              "a list of parameters, or add --set=zero_optimization.stage=2";
    return failure();
  }
  for (ListedParameter &parameter : list.parameters)
    if (countPart(parameter, numTensorRanks, numExpertRanks) <= most)
      parameter.unit.clear();
  if (llvm::any_of(list.parameters, hasUnit))
    return success();
  message = ("stage 3 shards nothing: each parameter of a layer has at most " +
             Twine(most) + " elements, which '" + kPersistenceKey +
             "' keeps whole on each rank; add --set=" + kPersistenceKey +
             "=0, or --set=zero_optimization.stage=2")
                .str();
  return failure();
}
