//===- LayerNorm.h - Layer normalization, forward and backward --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_LAYERNORM_H
#define ZERO_EXAMPLES_TRANSFORMER_LAYERNORM_H

#include <cstdint>

namespace transformer {

/// y = (x - mean) / sqrt(variance + 1e-5) * scale + shift, row by row. Keeps
/// the normalized rows and 1 / sqrt(...) of each row for the backward pass.
template <typename T>
void layerNormForward(int64_t rows, int64_t width, const T *x, const T *scale,
                      const T *shift, T *y, T *normalized, T *inverse);

/// Overwrites the gradients of scale and shift and *adds* the input's to
/// |xGradient|: in a pre-norm block a residual branch is already there.
template <typename T>
void layerNormBackward(int64_t rows, int64_t width, const T *normalized,
                       const T *inverse, const T *scale, const T *yGradient,
                       T *xGradient, T *scaleGradient, T *shiftGradient);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_LAYERNORM_H
