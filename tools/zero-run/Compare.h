//===- Compare.h - Two runs, element by element -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_COMPARE_H
#define ZERO_TOOLS_ZERO_RUN_COMPARE_H

#include "tools/zero-run/Engine.h"

#include <optional>

namespace zero {

/// How far one array was from its reference.
struct Difference {
  int64_t elements = 0;
  /// Elements outside the reference's bound.
  int64_t outside = 0;
  /// Elements whose bound is at least as large as the value: they say nothing.
  int64_t uninformative = 0;
  /// The largest error, as a share of its bound and as such.
  double worstShare = 0;
  double worstError = 0;
  /// The first element outside.
  std::optional<int64_t> first;
  double got = 0;
  double expected = 0;
  double bound = 0;

  /// The share of elements whose bound says nothing.
  double getUninformativeShare() const {
    return elements > 0 ? static_cast<double>(uninformative) / elements : 0;
  }
  void add(const Difference &other);
  /// "1.5, expected 1 within 0.25", of the first element outside.
  std::string describe() const;
};

/// Compares |got| with |expected| within the bounds of the latter; a bound of
/// zero asks for equal bits.
Difference compare(llvm::ArrayRef<Number> got, llvm::ArrayRef<Number> expected);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_COMPARE_H
