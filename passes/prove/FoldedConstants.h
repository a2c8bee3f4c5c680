//===- FoldedConstants.h - Constants that were computed ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step has 1 - 0.9 where a program may have the constant that a folder made
// of it, such as MLIR's. Both are one number if the folder did not round it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_FOLDEDCONSTANTS_H
#define ZERO_PASSES_PROVE_FOLDEDCONSTANTS_H

#include "passes/prove/Algebra.h"

namespace zero::prove {

/// Makes one constant of each sum of products of constants that is a number of
/// f64. Other sums stay as they are, and so do operands of comparisons, minima
/// and the like: 1 + 1e-8 > 1 is false in f32, where both sides are 1.
Substitution foldConstants(Algebra &algebra);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_FOLDEDCONSTANTS_H
