//===- Gelu.h - The GELU nonlinearity, forward and backward -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_GELU_H
#define ZERO_EXAMPLES_TRANSFORMER_GELU_H

#include <cstdint>

namespace transformer {

/// y = x * sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3), which is the
/// usual tanh form with one exponential.
template <typename T> void geluForward(int64_t count, const T *x, T *y);

/// Turns the gradient of y into that of x, in place.
template <typename T> void geluBackward(int64_t count, const T *x, T *gradient);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_GELU_H
