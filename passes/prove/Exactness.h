//===- Exactness.h - Arithmetic that an outcome may depend on ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof computes over the reals, and an outcome is computed in f64. So an
// outcome may depend only on arithmetic that has no other result in f64.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_EXACTNESS_H
#define ZERO_PASSES_PROVE_EXACTNESS_H

#include "passes/prove/Number.h"

namespace zero::prove {

/// Whether the truth of a comparison with the result of |op| in f64 may differ
/// from its truth over the reals.
///
/// Arithmetic is exact
/// - of whole numbers of counts that f64 holds, see isExactCount();
/// - of a count times a constant, if it is compared with a number that f64
///   holds: a number that is rounded is larger than each of these;
/// - of a number minus itself, or times 0, 1 or -1.
///
/// A sum of sums over elements and a small multiple of it are rounded. No
/// factor is negative, so their bounds are those over the reals.
bool mayRound(mlir::Operation &op, llvm::ArrayRef<Number> operands,
              const Number &result);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_EXACTNESS_H
