//===- Linear.cpp - y = x W^T + b, forward and backward -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Linear.h"

#include "examples/transformer/Gemm.h"

#include <algorithm>

namespace transformer {

template <typename T>
void linearForward(const LinearShape &shape, const T *x, const T *weight,
                   const T *bias, T *y) {
  if (bias)
    for (int64_t row = 0; row < shape.rows; ++row)
      std::copy(bias, bias + shape.outputs, y + row * shape.outputs);
  multiply(shape.rows, shape.outputs, shape.inputs, T(1),
           Matrix<const T>{x, shape.inputs},
           Matrix<const T>{weight, shape.inputs}.transpose(), T(bias ? 1 : 0),
           Matrix<T>{y, shape.outputs});
}

template <typename T>
void linearBackward(const LinearShape &shape, const T *x, const T *weight,
                    const T *yGradient, T *xGradient, T *weightGradient,
                    T *biasGradient) {
  multiply(shape.rows, shape.inputs, shape.outputs, T(1),
           Matrix<const T>{yGradient, shape.outputs},
           Matrix<const T>{weight, shape.inputs}, T(0),
           Matrix<T>{xGradient, shape.inputs});
  multiply(shape.outputs, shape.inputs, shape.rows, T(1),
           Matrix<const T>{yGradient, shape.outputs}.transpose(),
           Matrix<const T>{x, shape.inputs}, T(0),
           Matrix<T>{weightGradient, shape.inputs});
  if (!biasGradient)
    return;
  std::fill(biasGradient, biasGradient + shape.outputs, T(0));
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t column = 0; column < shape.outputs; ++column)
      biasGradient[column] += yGradient[row * shape.outputs + column];
}

template void linearForward(const LinearShape &, const float *, const float *,
                            const float *, float *);
template void linearForward(const LinearShape &, const double *, const double *,
                            const double *, double *);
template void linearBackward(const LinearShape &, const float *, const float *,
                             const float *, float *, float *, float *);
template void linearBackward(const LinearShape &, const double *,
                             const double *, const double *, double *, double *,
                             double *);

} // namespace transformer
