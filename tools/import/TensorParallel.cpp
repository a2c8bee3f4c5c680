//===- TensorParallel.cpp - Which dimension tensor parallelism divides ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"

#include "llvm/ADT/STLExtras.h"

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

/// Puts the dimension of "PATTERN=DIM" into the parameters that match.
static LogicalResult divide(StringRef text, ParameterList &list,
                            std::string &message) {
  auto [pattern, dim] = text.rsplit('=');
  int64_t number = 0;
  bool isNone = dim == "none";
  if (pattern.empty() || dim.empty() ||
      (!isNone && (dim.getAsInteger(10, number) || number < 0))) {
    message = ("--shard must be PATTERN=DIMENSION or PATTERN=none, such as "
               "--shard='*.fc1.weight=0', got '" +
               text + "'")
                  .str();
    return failure();
  }
  return forEachMatch(
      "shard", pattern, list,
      [&](ListedParameter &parameter) {
        parameter.shardedDim.reset();
        if (!isNone)
          parameter.shardedDim = number;
      },
      message);
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
  for (const std::string &text : request.shards)
    if (failed(divide(text, list, message)))
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
