//===- TensorParallel.cpp - Which dimension tensor parallelism divides ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero;

namespace {
/// Modules that Megatron's tensor parallelism divides, by the last part of
/// their names, and the dimension of their weights. A bias is divided where the
/// outputs are.
struct DividedModule {
  llvm::StringLiteral name;
  int64_t dim;
  bool dividesOutputs;
};
} // namespace

/// A weight of a linear layer has a row for each output. That of Conv1D, in
/// GPT-2, has a column for each.
static constexpr DividedModule kDivided[] = {
    {"q_proj", 0, true},       {"k_proj", 0, true},    {"v_proj", 0, true},
    {"q_b_proj", 0, true},     {"kv_b_proj", 0, true}, {"o_proj", 1, false},
    {"gate_proj", 0, true},    {"up_proj", 0, true},   {"down_proj", 1, false},
    {"w1", 0, true},           {"w3", 0, true},        {"w2", 1, false},
    {"c_attn", 1, true},       {"c_fc", 1, true},      {"c_proj", 0, false},
    {"embed_tokens", 0, true}, {"wte", 0, true},       {"lm_head", 0, true}};

/// The dimension of |parameter| that is divided by its name.
static std::optional<int64_t> findDim(const ListedParameter &parameter) {
  auto [path, last] = StringRef(parameter.name).rsplit('.');
  StringRef module = path.drop_front(path.rfind('.') + 1);
  auto *found = llvm::find_if(
      kDivided, [&](const DividedModule &one) { return one.name == module; });
  if (found == std::end(kDivided))
    return std::nullopt;
  if (last == "weight" && parameter.shape.size() == 2)
    return found->dim;
  bool isBias = last == "bias" && parameter.shape.size() == 1;
  return isBias && found->dividesOutputs ? std::optional<int64_t>(0)
                                         : std::nullopt;
}

/// A vocabulary often has a size that nothing divides, and is left whole then.
static bool isVocabulary(StringRef name) {
  return name.ends_with("embed_tokens.weight") ||
         name.ends_with("wte.weight") || name.ends_with("lm_head.weight");
}

/// The module of |parameter|, "model.layers.0.self_attn.q_norm".
static StringRef getModule(const ListedParameter &parameter) {
  return StringRef(parameter.name).rsplit('.').first;
}

/// Puts the dimension of "PATTERN=DIM" into the parameters that match, and the
/// names of these into |named|.
static LogicalResult divide(StringRef text, ParameterList &list,
                            llvm::StringSet<> &named, std::string &message) {
  auto [pattern, dim] = text.rsplit('=');
  int64_t number = 0;
  bool isPartial = dim == "partial";
  bool isWhole = isPartial || dim == "none";
  if (pattern.empty() || dim.empty() ||
      (!isWhole && (dim.getAsInteger(10, number) || number < 0))) {
    message = ("--shard must be PATTERN=DIMENSION, PATTERN=none or "
               "PATTERN=partial, such as --shard='*.fc1.weight=0', got '" +
               text + "'")
                  .str();
    return failure();
  }
  return forEachMatch(
      "shard", pattern, list,
      [&](ListedParameter &parameter) {
        named.insert(parameter.name);
        parameter.isPartial = isPartial;
        parameter.shardedDim.reset();
        if (!isWhole)
          parameter.shardedDim = number;
      },
      message);
}

/// The norms of single heads of queries and keys have one weight for all heads.
/// Where each rank has some of the heads, or a part of the gradient of their
/// projection, it has a part of the gradient. Those in |named| stay as they
/// are.
static void findPartialNorms(ParameterList &list,
                             const llvm::StringSet<> &named) {
  llvm::StringMap<const ListedParameter *> projections; // by module
  for (const ListedParameter &parameter : list.parameters)
    if ((parameter.shardedDim == 0 || parameter.isPartial) &&
        parameter.shape.size() == 2)
      projections[getModule(parameter)] = &parameter;
  for (ListedParameter &parameter : list.parameters) {
    StringRef module = getModule(parameter);
    if (parameter.shape.size() != 1 || named.contains(parameter.name) ||
        !(module.ends_with(".q_norm") || module.ends_with(".k_norm")))
      continue;
    std::string projection = (module.drop_back(4) + "proj").str();
    const ListedParameter *heads = projections.lookup(projection);
    parameter.isPartial = heads && parameter.shape[0] < heads->shape[0];
  }
}

/// Checks that no head of attention is divided, for parameters that are not in
/// |named|.
static LogicalResult checkHeads(const ParameterList &list,
                                int64_t numTensorRanks,
                                const llvm::StringSet<> &named,
                                std::string &message) {
  for (const ListedParameter &parameter : list.parameters) {
    StringRef module = getModule(parameter);
    bool isOfKeys = module.ends_with(".k_proj") || module.ends_with(".v_proj");
    bool isOfQueries =
        module.ends_with(".q_proj") || module.ends_with(".q_b_proj") ||
        module.ends_with(".kv_b_proj") || module.ends_with(".c_attn");
    std::optional<int64_t> heads = isOfKeys      ? list.numKeyHeads
                                   : isOfQueries ? list.numHeads
                                                 : std::nullopt;
    if (!heads || !parameter.shardedDim || named.contains(parameter.name) ||
        *heads % numTensorRanks == 0)
      continue;
    std::string all = ("*" + module.take_back(7) + ".*").str();
    message =
        ("parameter '" + Twine(parameter.name) + "' has " + Twine(*heads) +
         " head" + (*heads == 1 ? "" : "s") +
         ", expected a multiple of tp=" + Twine(numTensorRanks) + "; " +
         (isOfKeys ? "choose another tp, or add --shard='" + all +
                         "=partial' if each rank has all keys and values, and "
                         "uses those of its queries"
                   : "choose another tp"))
            .str();
    return failure();
  }
  return success();
}

LogicalResult zero::divideParameters(const ImportRequest &request,
                                     int64_t numTensorRanks,
                                     ParameterList &list,
                                     std::string &message) {
  for (ListedParameter &parameter : list.parameters) {
    parameter.shardedDim = findDim(parameter);
    if (isVocabulary(parameter.name) && parameter.shardedDim &&
        parameter.shape[*parameter.shardedDim] % numTensorRanks != 0)
      parameter.shardedDim.reset();
  }
  llvm::StringSet<> named;
  for (const std::string &text : request.shards)
    if (failed(divide(text, list, named, message)))
      return failure();
  findPartialNorms(list, named);
  if (failed(checkHeads(list, numTensorRanks, named, message)))
    return failure();
  for (const ListedParameter &parameter : list.parameters) {
    if (!parameter.shardedDim)
      continue;
    int64_t dim = *parameter.shardedDim;
    int64_t rank = parameter.shape.size();
    if (dim < rank && parameter.shape[dim] % numTensorRanks == 0)
      continue;
    message = "parameter '" + parameter.name + "' has " +
              (dim < rank ? std::to_string(parameter.shape[dim]) +
                                " elements in dimension " + std::to_string(dim)
                          : std::to_string(rank) + " dimensions, and none is " +
                                std::to_string(dim)) +
              ", expected a multiple of tp=" + std::to_string(numTensorRanks) +
              "; add --shard='" + parameter.name + "=none'";
    return failure();
  }
  return success();
}
