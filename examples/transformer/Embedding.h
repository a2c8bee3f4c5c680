//===- Embedding.h - Token and position embeddings --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_EMBEDDING_H
#define ZERO_EXAMPLES_TRANSFORMER_EMBEDDING_H

#include <cstdint>

namespace transformer {

struct EmbeddingShape {
  int64_t batch;
  int64_t context;
  int64_t width;
  int64_t vocabulary;
};

/// y[b, t] = token[inputs[b, t]] + position[t].
template <typename T>
void embeddingForward(const EmbeddingShape &shape, const int32_t *inputs,
                      const T *token, const T *position, T *y);

/// Overwrites both gradients.
template <typename T>
void embeddingBackward(const EmbeddingShape &shape, const int32_t *inputs,
                       const T *yGradient, T *tokenGradient,
                       T *positionGradient);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_EMBEDDING_H
