//===- Range.h - All values that a number may have --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is true for every value of a range is derived, and not tried.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_RANGE_H
#define ZERO_PASSES_PROVE_RANGE_H

#include "passes/prove/Algebra.h"

namespace zero::prove {

/// The numbers from |least| to |most|, which may be infinite, and nan or not.
/// There are no numbers if |least| is more than |most|.
struct Range {
  double least;
  double most;
  bool nan = false;

  static Range ofNumber(double value);
  /// Everything, or everything that is not negative.
  static Range ofAll();
  static Range ofAllFrom0();

  bool hasNumbers() const { return least <= most; }
  bool has(double value) const { return least <= value && value <= most; }
  /// Whether it is one number, and not nan.
  bool isOne() const { return least == most && !nan; }
};

/// The truth of the comparison |name|, "cmpf oeq" or the like, of two numbers.
Range compareRanges(llvm::StringRef name, Range a, Range b);

/// The values of |a| in f64 if bases have those of |function|. It may have more
/// than |a| takes on, if a base occurs twice.
Range evaluateRange(Expr a,
                    llvm::function_ref<std::optional<Range>(BaseRef)> function);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_RANGE_H
