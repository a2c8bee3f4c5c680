//===- SignOfZero.h - Signs that a step may depend on -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_SIGNOFZERO_H
#define ZERO_PASSES_PROVE_SIGNOFZERO_H

#include "mlir/Dialect/Math/IR/Math.h"

namespace zero::prove {

/// Checks that |op| takes the sign of no number that may be 0, unless the
/// result is selected only where a comparison says that it is not 0. A constant
/// has its own sign. |isZero| knows the constants that are 0 or -0. Reason:
/// over the reals a + b and -(-a - b) are equal, and where a is -b the first is
/// 0 and the second -0.
mlir::LogicalResult checkSign(mlir::math::CopySignOp op,
                              llvm::function_ref<bool(mlir::Value)> isZero);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_SIGNOFZERO_H
