//===- Embedding.cpp - Token and position embeddings ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Embedding.h"

#include <algorithm>

namespace transformer {

template <typename T>
void embeddingForward(const EmbeddingShape &shape, const int32_t *inputs,
                      const T *token, const T *position, T *y) {
  for (int64_t row = 0; row < shape.batch * shape.context; ++row) {
    const T *of = token + inputs[row] * shape.width;
    const T *at = position + row % shape.context * shape.width;
    for (int64_t i = 0; i < shape.width; ++i)
      y[row * shape.width + i] = of[i] + at[i];
  }
}

template <typename T>
void embeddingBackward(const EmbeddingShape &shape, const int32_t *inputs,
                       const T *yGradient, T *tokenGradient,
                       T *positionGradient) {
  std::fill(tokenGradient, tokenGradient + shape.vocabulary * shape.width,
            T(0));
  std::fill(positionGradient, positionGradient + shape.context * shape.width,
            T(0));
  for (int64_t row = 0; row < shape.batch * shape.context; ++row) {
    T *of = tokenGradient + inputs[row] * shape.width;
    T *at = positionGradient + row % shape.context * shape.width;
    for (int64_t i = 0; i < shape.width; ++i) {
      of[i] += yGradient[row * shape.width + i];
      at[i] += yGradient[row * shape.width + i];
    }
  }
}

template void embeddingForward(const EmbeddingShape &, const int32_t *,
                               const float *, const float *, float *);
template void embeddingForward(const EmbeddingShape &, const int32_t *,
                               const double *, const double *, double *);
template void embeddingBackward(const EmbeddingShape &, const int32_t *,
                                const float *, float *, float *);
template void embeddingBackward(const EmbeddingShape &, const int32_t *,
                                const double *, double *, double *);

} // namespace transformer
