//===- CrossEntropy.h - Softmax and cross-entropy ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_CROSSENTROPY_H
#define ZERO_EXAMPLES_TRANSFORMER_CROSSENTROPY_H

#include <cstdint>

namespace transformer {

/// The mean over rows of -log softmax(logits)[target]. Turns the logits into
/// probabilities, in place.
template <typename T>
double crossEntropyForward(int64_t rows, int64_t vocabulary,
                           const int32_t *targets, T *logits);

/// The gradient of |scale| times that mean, in place of the probabilities.
template <typename T>
void crossEntropyBackward(int64_t rows, int64_t vocabulary,
                          const int32_t *targets, double scale,
                          T *probabilities);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_CROSSENTROPY_H
