//===- Gelu.cpp - The GELU nonlinearity, forward and backward -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Gelu.h"

#include <cmath>

namespace transformer {

template <typename T> static T gate(T x) {
  T twice = T(1.5957691216057308) * (x + T(0.044715) * x * x * x);
  return T(1) / (T(1) + std::exp(-twice));
}

template <typename T> void geluForward(int64_t count, const T *x, T *y) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = x[i] * gate(x[i]);
}

template <typename T>
void geluBackward(int64_t count, const T *x, T *gradient) {
  for (int64_t i = 0; i < count; ++i) {
    T s = gate(x[i]);
    T slope = T(1.5957691216057308) * (T(1) + T(3) * T(0.044715) * x[i] * x[i]);
    gradient[i] *= s + x[i] * s * (T(1) - s) * slope;
  }
}

template void geluForward(int64_t, const float *, float *);
template void geluForward(int64_t, const double *, double *);
template void geluBackward(int64_t, const float *, float *);
template void geluBackward(int64_t, const double *, double *);

} // namespace transformer
