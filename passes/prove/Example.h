//===- Example.h - Counterexamples in numbers -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_EXAMPLE_H
#define ZERO_PASSES_PROVE_EXAMPLE_H

#include "passes/prove/Algebra.h"

namespace zero::prove {

/// A counterexample to |a| = |expected| on |ranks| ranks, with the fewest
/// backward passes: "counterexample: gradients of 2 backward passes are 1 and 2
/// on rank 0, 10 and 20 on rank 1; rank 0 has 3, expected 33". Empty if the
/// tried numbers show no difference.
std::string findExample(Algebra &algebra, Expr a, Expr expected, int64_t ranks);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_EXAMPLE_H
