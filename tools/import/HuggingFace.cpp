//===- HuggingFace.cpp - The parameters of a config.json ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/HuggingFace.h"
#include "tools/import/ReadJson.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

/// What no model has: sizes that multiply without overflow, and as many layers
/// or experts as fit into memory as text.
static constexpr int64_t kMostSize = int64_t(1) << 30;
static constexpr size_t kMostParameters = 1'000'000;

int64_t HuggingFaceModel::getSize(StringRef key,
                                  std::optional<int64_t> otherwise) {
  const json::Value *value = config.get(key);
  bool isThere = value && value->kind() != json::Value::Null;
  if (!isThere && otherwise)
    return *otherwise;
  std::optional<int64_t> size = isThere ? value->getAsInteger() : std::nullopt;
  if (size && *size >= 1 && *size <= kMostSize)
    return *size;
  if (message.empty())
    message = (file + ": '" + key + "' is " +
               (isThere ? cutValue(*value) : "missing") +
               ", expected a whole number from 1 to " + Twine(kMostSize))
                  .str();
  return 1;
}

int64_t HuggingFaceModel::getKeyHeads(int64_t heads) {
  constexpr llvm::StringLiteral kHeads = "num_key_value_heads";
  bool isEach = config.get(kHeads) ||
                config.getString("model_type") == StringRef("llama");
  return isEach ? getSize(kHeads, heads) : getSize(kHeads);
}

bool HuggingFaceModel::getFlag(StringRef key, bool otherwise) {
  const json::Value *value = config.get(key);
  if (!value || value->kind() == json::Value::Null)
    return otherwise;
  if (std::optional<bool> flag = value->getAsBoolean())
    return *flag;
  if (message.empty())
    message = (file + ": '" + key + "' is " + cutValue(*value) +
               ", expected true or false")
                  .str();
  return otherwise;
}

void HuggingFaceModel::refuseFlag(StringRef key, StringRef what) {
  if (getFlag(key, false) && message.empty())
    message = (file + ": '" + key + "' is true, and " + what +
               " are not imported; pass the safetensors file of the model")
                  .str();
}

void HuggingFaceModel::add(const Twine &name, std::vector<int64_t> shape) {
  if (!isRight())
    return;
  if (list.parameters.size() == kMostParameters) {
    message = (file + ": the model has more than " + Twine(kMostParameters) +
               " parameters")
                  .str();
    return;
  }
  ListedParameter &parameter = list.parameters.emplace_back();
  parameter.name = name.str();
  parameter.shape = std::move(shape);
}

void HuggingFaceModel::addLinear(const Twine &name, int64_t out, int64_t in,
                                 bool hasBias) {
  add(name + ".weight", {out, in});
  if (hasBias)
    add(name + ".bias", {out});
}

LogicalResult zero::readHuggingFace(const json::Object &config, StringRef file,
                                    ParameterList &list, std::string &message) {
  HuggingFaceModel model(config, file, list, message);
  StringRef type = config.getString("model_type").value_or("");
  message.clear();
  if (type == "gpt2")
    addGpt2(model);
  else if (type == "mixtral")
    addMixtral(model);
  else if (type == "deepseek_v3")
    addDeepSeek(model);
  else if (llvm::is_contained({"llama", "mistral", "qwen2", "qwen3", "gemma",
                               "gemma2", "gemma3_text"},
                              type))
    addLlama(model, type);
  else
    message = (file + ": 'model_type' is '" + cutText(type) +
               "', expected gpt2, llama, mistral, qwen2, qwen3, gemma, gemma2, "
               "gemma3_text, mixtral or deepseek_v3; for any other model pass "
               "its safetensors file or a list of parameters")
                  .str();
  if (!model.isRight())
    return failure();
  bool isGpt2 = type == "gpt2";
  list.hiddenSize = model.getSize(isGpt2 ? "n_embd" : "hidden_size");
  // The number of GPT-2's heads changes no size of a parameter.
  list.numHeads = isGpt2 ? model.getSize("n_head", 12)
                         : model.getSize("num_attention_heads");
  // The latent projections of DeepSeek-V3 have as many of each.
  list.numKeyHeads = isGpt2 || type == "deepseek_v3"
                         ? list.numHeads
                         : model.getKeyHeads(*list.numHeads);
  return success(model.isRight());
}
