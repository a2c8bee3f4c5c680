//===- Linear.h - y = x W^T + b, forward and backward -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_LINEAR_H
#define ZERO_EXAMPLES_TRANSFORMER_LINEAR_H

#include <cstdint>

namespace transformer {

/// A dense layer over |rows| inputs. The weight is |outputs| x |inputs|.
struct LinearShape {
  int64_t rows;
  int64_t inputs;
  int64_t outputs;
};

/// |bias| may be null.
template <typename T>
void linearForward(const LinearShape &shape, const T *x, const T *weight,
                   const T *bias, T *y);

/// Overwrites the gradients of input, weight and bias. |biasGradient| may be
/// null.
template <typename T>
void linearBackward(const LinearShape &shape, const T *x, const T *weight,
                    const T *yGradient, T *xGradient, T *weightGradient,
                    T *biasGradient);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_LINEAR_H
