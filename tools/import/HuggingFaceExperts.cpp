//===- HuggingFaceExperts.cpp - Mixtral and DeepSeek-V3 -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every expert has parameters of its own, as in the files of these models.
//
//===----------------------------------------------------------------------===//

#include "tools/import/HuggingFace.h"

using namespace zero;

static void addNorms(HuggingFaceModel &model, const std::string &layer) {
  int64_t hidden = model.getSize("hidden_size");
  model.add(layer + "input_layernorm.weight", {hidden});
  model.add(layer + "post_attention_layernorm.weight", {hidden});
}

void zero::addMixtral(HuggingFaceModel &model) {
  int64_t hidden = model.getSize("hidden_size");
  int64_t inner = model.getSize("intermediate_size");
  int64_t experts = model.getSize("num_local_experts");
  int64_t headSize =
      model.getSize("head_dim", hidden / model.getSize("num_attention_heads"));
  addDecoder(model, /*isTied=*/false, [&](int64_t, const std::string &layer) {
    addAttention(model, layer, headSize, /*hasBias=*/false,
                 /*hasOutBias=*/false);
    std::string block = layer + "block_sparse_moe.";
    model.addLinear(block + "gate", experts, hidden);
    for (int64_t i = 0; i < experts && model.isRight(); ++i) {
      std::string expert = block + "experts." + std::to_string(i) + ".";
      model.addLinear(expert + "w1", inner, hidden);
      model.addLinear(expert + "w2", hidden, inner);
      model.addLinear(expert + "w3", inner, hidden);
    }
    addNorms(model, layer);
  });
}

/// Attention with latent projections of queries, keys and values.
static void addLatentAttention(HuggingFaceModel &model,
                               const std::string &layer) {
  int64_t hidden = model.getSize("hidden_size");
  int64_t heads = model.getSize("num_attention_heads");
  int64_t queries = model.getSize("q_lora_rank");
  int64_t latent = model.getSize("kv_lora_rank");
  int64_t rotated = model.getSize("qk_rope_head_dim");
  int64_t plain = model.getSize("qk_nope_head_dim");
  int64_t values = model.getSize("v_head_dim");
  bool hasBias = model.getFlag("attention_bias", false);
  std::string prefix = layer + "self_attn.";
  model.addLinear(prefix + "q_a_proj", queries, hidden, hasBias);
  model.add(prefix + "q_a_layernorm.weight", {queries});
  model.addLinear(prefix + "q_b_proj", heads * (plain + rotated), queries);
  model.addLinear(prefix + "kv_a_proj_with_mqa", latent + rotated, hidden,
                  hasBias);
  model.add(prefix + "kv_a_layernorm.weight", {latent});
  model.addLinear(prefix + "kv_b_proj", heads * (plain + values), latent);
  model.addLinear(prefix + "o_proj", hidden, heads * values, hasBias);
}

void zero::addDeepSeek(HuggingFaceModel &model) {
  int64_t hidden = model.getSize("hidden_size");
  int64_t inner = model.getSize("intermediate_size");
  int64_t expertInner = model.getSize("moe_intermediate_size");
  int64_t experts = model.getSize("n_routed_experts");
  int64_t shared = model.getSize("n_shared_experts");
  int64_t dense = model.getSize("first_k_dense_replace");
  addDecoder(
      model, /*isTied=*/false, [&](int64_t number, const std::string &layer) {
        addLatentAttention(model, layer);
        std::string mlp = layer + "mlp.";
        if (number < dense) {
          addGatedMlp(model, mlp, inner);
          return addNorms(model, layer);
        }
        // The correction of scores is a buffer, and no gradient reaches
        // it.
        model.addLinear(mlp + "gate", experts, hidden);
        for (int64_t i = 0; i < experts && model.isRight(); ++i)
          addGatedMlp(model, mlp + "experts." + std::to_string(i) + ".",
                      expertInner);
        addGatedMlp(model, mlp + "shared_experts.", shared * expertInner);
        addNorms(model, layer);
      });
}
