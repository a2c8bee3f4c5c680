//===- nonfinite.cpp - Which gradient was not finite ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/nonfinite.h"

#include "core/numeric.h"

#include <algorithm>

using namespace zero_rt;

/// Whether all bits of |exponent| are set in one of |count| words.
template <typename Word>
static bool anyHas(Word exponent, const void *data, int64_t count) {
  auto *words = static_cast<const Word *>(data);
  return std::any_of(words, words + count,
                     [&](Word word) { return (word & exponent) == exponent; });
}

static bool isFinite(const void *data, int64_t count, int64_t dtype) {
  return dispatch(dtype, [&](auto type) {
    return !anyHas(decltype(type)::infinity, data, count);
  });
}

void NonfiniteGradients::look(NonfiniteGradient gradient, const void *data,
                              int64_t elements, int64_t dtype) {
  bool isKnown = std::any_of(found.begin(), found.end(), [&](auto &known) {
    return known.parameter == gradient.parameter;
  });
  if (!isKnown && !isFinite(data, elements, dtype))
    found.push_back(gradient);
}
