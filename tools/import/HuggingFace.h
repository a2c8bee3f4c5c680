//===- HuggingFace.h - The parameters of a config.json ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_HUGGINGFACE_H
#define ZERO_TOOLS_IMPORT_HUGGINGFACE_H

#include "tools/recipe/Recipe.h"

#include "llvm/Support/JSON.h"

namespace zero {

/// Adds the parameters of a model of transformers, in the order of its modules,
/// from its config.json |config|, which messages call |file|.
mlir::LogicalResult readHuggingFace(const llvm::json::Object &config,
                                    llvm::StringRef file, ParameterList &list,
                                    std::string &message);

/// The sizes of a config.json, and the parameters that are made of them.
class HuggingFaceModel {
public:
  HuggingFaceModel(const llvm::json::Object &config, llvm::StringRef file,
                   ParameterList &list, std::string &message)
      : config(config), file(file), list(list), message(message) {}

  /// The size |key|, at least 1. Where the key is not there, |otherwise|;
  /// without one, that is an error.
  int64_t getSize(llvm::StringRef key,
                  std::optional<int64_t> otherwise = std::nullopt);
  /// The heads of keys and values: all |heads| where that is null. Without the
  /// key each family but Llama has a number of its own, so it is an error
  /// there.
  int64_t getKeyHeads(int64_t heads);
  bool getFlag(llvm::StringRef key, bool otherwise);
  /// An error if the flag |key| is true. |what| it would add is not known here.
  void refuseFlag(llvm::StringRef key, llvm::StringRef what);
  void add(const llvm::Twine &name, std::vector<int64_t> shape);
  /// The weight of a linear layer, and its bias where it |hasBias|.
  void addLinear(const llvm::Twine &name, int64_t out, int64_t in,
                 bool hasBias = false);
  /// Whether every size so far was right. Parameters of other sizes are not
  /// added.
  bool isRight() const { return message.empty(); }

private:
  const llvm::json::Object &config;
  llvm::StringRef file;
  ParameterList &list;
  std::string &message;
};

// The families.
void addGpt2(HuggingFaceModel &model);
/// Llama and similar models. |type| is the model_type.
void addLlama(HuggingFaceModel &model, llvm::StringRef type);
void addMixtral(HuggingFaceModel &model);
void addDeepSeek(HuggingFaceModel &model);

// What they share.

/// The layers of a model of decoders, between embeddings, a norm and a head.
void addDecoder(
    HuggingFaceModel &model, bool isTied,
    llvm::function_ref<void(int64_t, const std::string &)> addLayer);
void addAttention(HuggingFaceModel &model, const std::string &layer,
                  int64_t headSize, bool hasBias, bool hasOutBias);
/// gate_proj, up_proj and down_proj.
void addGatedMlp(HuggingFaceModel &model, const std::string &prefix,
                 int64_t inner, bool hasBias = false);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_HUGGINGFACE_H
