//===- HuggingFaceDense.cpp - GPT-2, Llama and models like them -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/HuggingFace.h"

using namespace zero;
using llvm::StringRef;

void zero::addDecoder(
    HuggingFaceModel &model, bool isTied,
    llvm::function_ref<void(int64_t, const std::string &)> addLayer) {
  int64_t hidden = model.getSize("hidden_size");
  int64_t vocabulary = model.getSize("vocab_size");
  int64_t layers = model.getSize("num_hidden_layers");
  model.add("model.embed_tokens.weight", {vocabulary, hidden});
  for (int64_t i = 0; i < layers && model.isRight(); ++i)
    addLayer(i, "model.layers." + std::to_string(i) + ".");
  model.add("model.norm.weight", {hidden});
  if (!model.getFlag("tie_word_embeddings", isTied))
    model.addLinear("lm_head", vocabulary, hidden);
}

void zero::addAttention(HuggingFaceModel &model, const std::string &layer,
                        int64_t headSize, bool hasBias, bool hasOutBias) {
  int64_t hidden = model.getSize("hidden_size");
  int64_t heads = model.getSize("num_attention_heads");
  int64_t kept = model.getKeyHeads(heads);
  std::string prefix = layer + "self_attn.";
  model.addLinear(prefix + "q_proj", heads * headSize, hidden, hasBias);
  model.addLinear(prefix + "k_proj", kept * headSize, hidden, hasBias);
  model.addLinear(prefix + "v_proj", kept * headSize, hidden, hasBias);
  model.addLinear(prefix + "o_proj", hidden, heads * headSize, hasOutBias);
}

void zero::addGatedMlp(HuggingFaceModel &model, const std::string &prefix,
                       int64_t inner, bool hasBias) {
  int64_t hidden = model.getSize("hidden_size");
  model.addLinear(prefix + "gate_proj", inner, hidden, hasBias);
  model.addLinear(prefix + "up_proj", inner, hidden, hasBias);
  model.addLinear(prefix + "down_proj", hidden, inner, hasBias);
}

void zero::addLlama(HuggingFaceModel &model, StringRef type) {
  bool isGemma = type.starts_with("gemma");
  bool hasFourNorms = type == "gemma2" || type == "gemma3_text";
  bool hasHeadNorms = type == "qwen3" || type == "gemma3_text";
  int64_t hidden = model.getSize("hidden_size");
  int64_t inner = model.getSize("intermediate_size");
  // transformers' defaults.
  int64_t usual = isGemma ? 256
                  : type == "qwen3"
                      ? 128
                      : hidden / model.getSize("num_attention_heads");
  int64_t headSize = model.getSize("head_dim", usual);
  bool isQwen2 = type == "qwen2";
  bool isMistral = type == "mistral"; // has none, whatever its config.json says
  bool hasBias =
      isQwen2 || (!isMistral && model.getFlag("attention_bias", false));
  bool hasMlpBias = type == "llama" && model.getFlag("mlp_bias", false);
  addDecoder(model, /*isTied=*/isGemma, [&](int64_t, const std::string &layer) {
    addAttention(model, layer, headSize, hasBias, hasBias && !isQwen2);
    if (hasHeadNorms) {
      model.add(layer + "self_attn.q_norm.weight", {headSize});
      model.add(layer + "self_attn.k_norm.weight", {headSize});
    }
    addGatedMlp(model, layer + "mlp.", inner, hasMlpBias);
    model.add(layer + "input_layernorm.weight", {hidden});
    model.add(layer + "post_attention_layernorm.weight", {hidden});
    if (!hasFourNorms)
      return;
    for (const char *norm : {"pre", "post"})
      model.add(layer + norm + "_feedforward_layernorm.weight", {hidden});
  });
}

/// A layer norm with a weight and a bias.
static void addNorm(HuggingFaceModel &model, const std::string &name,
                    int64_t size) {
  model.add(name + ".weight", {size});
  model.add(name + ".bias", {size});
}

/// transformers' Conv1D, whose weight is that of a linear layer, transposed.
static void addConv1d(HuggingFaceModel &model, const std::string &name,
                      int64_t in, int64_t out) {
  model.add(name + ".weight", {in, out});
  model.add(name + ".bias", {out});
}

void zero::addGpt2(HuggingFaceModel &model) {
  model.refuseFlag("add_cross_attention", "layers of cross-attention");
  int64_t size = model.getSize("n_embd");
  int64_t inner = model.getSize("n_inner", 4 * size);
  int64_t vocabulary = model.getSize("vocab_size");
  int64_t layers = model.getSize("n_layer");
  model.add("transformer.wte.weight", {vocabulary, size});
  model.add("transformer.wpe.weight", {model.getSize("n_positions"), size});
  for (int64_t i = 0; i < layers && model.isRight(); ++i) {
    std::string layer = "transformer.h." + std::to_string(i) + ".";
    addNorm(model, layer + "ln_1", size);
    addConv1d(model, layer + "attn.c_attn", size, 3 * size);
    addConv1d(model, layer + "attn.c_proj", size, size);
    addNorm(model, layer + "ln_2", size);
    addConv1d(model, layer + "mlp.c_fc", size, inner);
    addConv1d(model, layer + "mlp.c_proj", inner, size);
  }
  addNorm(model, "transformer.ln_f", size);
  if (!model.getFlag("tie_word_embeddings", true))
    model.addLinear("lm_head", vocabulary, size);
}
