//===- Compare.cpp - Two runs, element by element -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Compare.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace zero;

void Difference::add(const Difference &other) {
  if (!first && other.first) {
    first = other.first;
    got = other.got;
    expected = other.expected;
    bound = other.bound;
  }
  elements += other.elements;
  outside += other.outside;
  uninformative += other.uninformative;
  worstShare = std::max(worstShare, other.worstShare);
  worstError = std::max(worstError, other.worstError);
}

std::string Difference::describe() const {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(
      "%.17g, expected %.17g within %.3g", got, expected, bound);
  return text;
}

/// Whether |got| is |expected| up to its bound. All nans are one.
static bool isInside(double got, const Number &expected) {
  if (std::isnan(expected.value) || std::isnan(got))
    return std::isnan(expected.value) && std::isnan(got);
  if (expected.bound == 0 || std::isinf(expected.value))
    return llvm::bit_cast<uint64_t>(got) ==
           llvm::bit_cast<uint64_t>(expected.value);
  return std::abs(got - expected.value) <= expected.bound;
}

Difference zero::compare(llvm::ArrayRef<Number> got,
                         llvm::ArrayRef<Number> expected) {
  Difference result;
  result.elements = expected.size();
  if (got.size() != expected.size()) {
    result.outside = std::max<int64_t>(1, result.elements);
    result.first = 0;
    result.got = got.size();
    result.expected = expected.size();
    return result;
  }
  for (auto [i, pair] : llvm::enumerate(llvm::zip(got, expected))) {
    double value = std::get<0>(pair).value;
    const Number &reference = std::get<1>(pair);
    double error = std::abs(value - reference.value);
    if (reference.bound > 0 && reference.bound >= std::abs(reference.value))
      ++result.uninformative;
    if (std::isfinite(error)) {
      result.worstError = std::max(result.worstError, error);
      if (reference.bound > 0)
        result.worstShare =
            std::max(result.worstShare, error / reference.bound);
    }
    if (isInside(value, reference))
      continue;
    ++result.outside;
    if (!result.first) {
      result.first = i;
      result.got = value;
      result.expected = reference.value;
      result.bound = reference.bound;
    }
  }
  return result;
}
