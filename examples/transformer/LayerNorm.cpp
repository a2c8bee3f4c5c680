//===- LayerNorm.cpp - Layer normalization, forward and backward ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/LayerNorm.h"

#include <algorithm>
#include <cmath>

namespace transformer {

template <typename T>
void layerNormForward(int64_t rows, int64_t width, const T *x, const T *scale,
                      const T *shift, T *y, T *normalized, T *inverse) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *in = x + row * width;
    T mean = 0;
    for (int64_t i = 0; i < width; ++i)
      mean += in[i];
    mean /= T(width);
    T variance = 0;
    for (int64_t i = 0; i < width; ++i)
      variance += (in[i] - mean) * (in[i] - mean);
    inverse[row] = T(1) / std::sqrt(variance / T(width) + T(1e-5));
    for (int64_t i = 0; i < width; ++i) {
      T value = (in[i] - mean) * inverse[row];
      normalized[row * width + i] = value;
      y[row * width + i] = value * scale[i] + shift[i];
    }
  }
}

template <typename T>
void layerNormBackward(int64_t rows, int64_t width, const T *normalized,
                       const T *inverse, const T *scale, const T *yGradient,
                       T *xGradient, T *scaleGradient, T *shiftGradient) {
  std::fill(scaleGradient, scaleGradient + width, T(0));
  std::fill(shiftGradient, shiftGradient + width, T(0));
  for (int64_t row = 0; row < rows; ++row) {
    const T *n = normalized + row * width;
    const T *dy = yGradient + row * width;
    // The input moves its own mean and variance, so both averages of what
    // reaches the normalized row are taken out.
    T mean = 0, along = 0;
    for (int64_t i = 0; i < width; ++i) {
      scaleGradient[i] += dy[i] * n[i];
      shiftGradient[i] += dy[i];
      mean += dy[i] * scale[i];
      along += dy[i] * scale[i] * n[i];
    }
    mean /= T(width);
    along /= T(width);
    for (int64_t i = 0; i < width; ++i)
      xGradient[row * width + i] +=
          (dy[i] * scale[i] - mean - n[i] * along) * inverse[row];
  }
}

template void layerNormForward(int64_t, int64_t, const float *, const float *,
                               const float *, float *, float *, float *);
template void layerNormForward(int64_t, int64_t, const double *, const double *,
                               const double *, double *, double *, double *);
template void layerNormBackward(int64_t, int64_t, const float *, const float *,
                                const float *, const float *, float *, float *,
                                float *);
template void layerNormBackward(int64_t, int64_t, const double *,
                                const double *, const double *, const double *,
                                double *, double *, double *);

} // namespace transformer
