//===- Attention.h - Causal multi-head attention ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_ATTENTION_H
#define ZERO_EXAMPLES_TRANSFORMER_ATTENTION_H

#include <cstdint>

namespace transformer {

struct AttentionShape {
  int64_t batch;
  int64_t context;
  int64_t width;
  int64_t heads; // divides width

  int64_t headWidth() const { return width / heads; }
  int64_t weights() const { return batch * heads * context * context; }
};

/// |qkv| has rows of query, key and value, each |width| long. |weights| keeps
/// the probabilities for the backward pass; above the diagonal they are 0.
template <typename T>
void attentionForward(const AttentionShape &shape, const T *qkv, T *weights,
                      T *y);

/// Overwrites |qkvGradient|. |scratch| holds context x context elements.
template <typename T>
void attentionBackward(const AttentionShape &shape, const T *qkv,
                       const T *weights, const T *yGradient, T *qkvGradient,
                       T *scratch);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_ATTENTION_H
