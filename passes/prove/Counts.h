//===- Counts.h - Numbers made of counts ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An outcome compares numbers of backward passes and of missing gradients. The
// result is derived for all such numbers, and not tried for some.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_COUNTS_H
#define ZERO_PASSES_PROVE_COUNTS_H

#include "passes/prove/Range.h"
#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// The number of missing gradients of a step on all ranks together is less than
/// 2 to the power of this. See kBackwardsExponent, too.
inline constexpr int kMissingExponent = 40;

/// Whether |base| is a count of this rank, or a sum over ranks of a power of
/// each rank's count.
bool isCount(BaseRef base);

/// Whether |base| is a sum over ranks of a power of each rank's number of
/// missing gradients. It may be negative if ranks pass other inputs.
bool isSumOfMissing(BaseRef base);

/// Whether |a| is a polynomial of counts.
bool isOfCounts(Expr a);

/// Whether |a| is a whole number of counts that f64 holds, so that arithmetic
/// which makes it does not round.
bool isExactCount(Expr a);

/// All values in |situation| of |a|, which is made of counts.
Range getRangeOfCounts(Algebra &algebra, Expr a, Situation situation,
                       int64_t ranks);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_COUNTS_H
