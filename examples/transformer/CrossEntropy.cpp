//===- CrossEntropy.cpp - Softmax and cross-entropy -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/CrossEntropy.h"

#include <algorithm>
#include <cmath>

namespace transformer {

template <typename T>
double crossEntropyForward(int64_t rows, int64_t vocabulary,
                           const int32_t *targets, T *logits) {
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row) {
    T *p = logits + row * vocabulary;
    T largest = *std::max_element(p, p + vocabulary);
    // From the logits, not as log(p): p may be 0 where its logarithm is finite.
    T shifted = p[targets[row]] - largest;
    T sum = 0;
    for (int64_t i = 0; i < vocabulary; ++i)
      sum += p[i] = std::exp(p[i] - largest);
    for (int64_t i = 0; i < vocabulary; ++i)
      p[i] /= sum;
    loss += std::log(double(sum)) - double(shifted);
  }
  return loss / double(rows);
}

template <typename T>
void crossEntropyBackward(int64_t rows, int64_t vocabulary,
                          const int32_t *targets, double scale,
                          T *probabilities) {
  T factor = T(scale / double(rows));
  for (int64_t row = 0; row < rows; ++row) {
    T *p = probabilities + row * vocabulary;
    p[targets[row]] -= T(1);
    for (int64_t i = 0; i < vocabulary; ++i)
      p[i] *= factor;
  }
}

template double crossEntropyForward(int64_t, int64_t, const int32_t *, float *);
template double crossEntropyForward(int64_t, int64_t, const int32_t *,
                                    double *);
template void crossEntropyBackward(int64_t, int64_t, const int32_t *, double,
                                   float *);
template void crossEntropyBackward(int64_t, int64_t, const int32_t *, double,
                                   double *);

} // namespace transformer
