//===- Attention.cpp - Causal multi-head attention ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Attention.h"

#include "examples/transformer/Gemm.h"

#include <algorithm>
#include <cmath>

namespace transformer {

/// The softmax of the first row + 1 scores of each row; zero behind them.
template <typename T> static void causalSoftmax(int64_t context, T *scores) {
  for (int64_t row = 0; row < context; ++row) {
    T *s = scores + row * context;
    T largest = *std::max_element(s, s + row + 1);
    T sum = 0;
    for (int64_t i = 0; i <= row; ++i)
      sum += s[i] = std::exp(s[i] - largest);
    for (int64_t i = 0; i <= row; ++i)
      s[i] /= sum;
    std::fill(s + row + 1, s + context, T(0));
  }
}

template <typename T>
void attentionForward(const AttentionShape &shape, const T *qkv, T *weights,
                      T *y) {
  int64_t context = shape.context, width = shape.width;
  int64_t part = shape.headWidth(), stride = 3 * width;
  T factor = T(1) / std::sqrt(T(part));
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      const T *q = qkv + b * context * stride + h * part;
      T *w = weights + (b * shape.heads + h) * context * context;
      multiply(context, context, part, factor, Matrix<const T>{q, stride},
               Matrix<const T>{q + width, stride}.transpose(), T(0),
               Matrix<T>{w, context});
      causalSoftmax(context, w);
      multiply(context, part, context, T(1), Matrix<const T>{w, context},
               Matrix<const T>{q + 2 * width, stride}, T(0),
               Matrix<T>{y + b * context * width + h * part, width});
    }
}

template <typename T>
void attentionBackward(const AttentionShape &shape, const T *qkv,
                       const T *weights, const T *yGradient, T *qkvGradient,
                       T *scratch) {
  int64_t context = shape.context, width = shape.width;
  int64_t part = shape.headWidth(), stride = 3 * width;
  T factor = T(1) / std::sqrt(T(part));
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      const T *q = qkv + b * context * stride + h * part;
      T *dq = qkvGradient + b * context * stride + h * part;
      const T *w = weights + (b * shape.heads + h) * context * context;
      Matrix<const T> dy{yGradient + b * context * width + h * part, width};
      multiply(context, part, context, T(1),
               Matrix<const T>{w, context}.transpose(), dy, T(0),
               Matrix<T>{dq + 2 * width, stride});
      multiply(context, context, part, T(1), dy,
               Matrix<const T>{q + 2 * width, stride}.transpose(), T(0),
               Matrix<T>{scratch, context});
      // Through the softmax: w * (dw - <w, dw>). Where w is 0 by the mask the
      // result is 0 too, so the mask needs no second look.
      for (int64_t row = 0; row < context; ++row) {
        T *s = scratch + row * context;
        const T *p = w + row * context;
        T dot = 0;
        for (int64_t i = 0; i <= row; ++i)
          dot += p[i] * s[i];
        for (int64_t i = 0; i < context; ++i)
          s[i] = p[i] * (s[i] - dot);
      }
      multiply(context, part, context, factor,
               Matrix<const T>{scratch, context},
               Matrix<const T>{q + width, stride}, T(0), Matrix<T>{dq, stride});
      multiply(context, part, context, factor,
               Matrix<const T>{scratch, context}.transpose(),
               Matrix<const T>{q, stride}, T(0), Matrix<T>{dq + width, stride});
    }
}

template void attentionForward(const AttentionShape &, const float *, float *,
                               float *);
template void attentionForward(const AttentionShape &, const double *, double *,
                               double *);
template void attentionBackward(const AttentionShape &, const float *,
                                const float *, const float *, float *, float *);
template void attentionBackward(const AttentionShape &, const double *,
                                const double *, const double *, double *,
                                double *);

} // namespace transformer
