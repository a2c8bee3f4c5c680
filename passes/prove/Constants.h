//===- Constants.h - What a type makes of constants -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_CONSTANTS_H
#define ZERO_PASSES_PROVE_CONSTANTS_H

#include "passes/prove/Algebra.h"

#include "mlir/IR/Operation.h"

namespace zero::prove {

/// The constant that an operation makes in its type.
struct Computed {
  double value = 0;
  /// Binary digits in which it is not the number over the reals; a few are
  /// none. (1 / 49) * 49 - 1 is not 0, and none of its digits is right.
  int lostBits = 0;
  /// Why it is no number of the type; empty if it is one.
  std::string reason = {};
};

/// What |op| makes of the constants |operands|, which were computed in their
/// types. Over the reals it makes |result|. Nothing if |op| does not compute.
std::optional<Computed> computeConstant(Algebra &algebra, mlir::Operation &op,
                                        llvm::ArrayRef<double> operands,
                                        Expr result);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_CONSTANTS_H
