//===- Roots.h - Roots of numbers that may not be finite --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The norm of clipped gradients is the root of c^2 s, where s is a sum of
// squares and c a clip coefficient, or the product of c and the root of s. In a
// step that is not applied s may be infinite or nan.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_ROOTS_H
#define ZERO_PASSES_PROVE_ROOTS_H

#include "passes/prove/Algebra.h"

namespace zero::prove {

/// Takes factors out of roots where this changes neither a number nor whether
/// it is infinite or nan. The number of tokens of all ranks counts as positive,
/// infinite or nan. Parts that many numbers have are visited once.
Substitution takeOutOfRoots(Algebra &algebra);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_ROOTS_H
