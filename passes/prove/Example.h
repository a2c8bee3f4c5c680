//===- Example.h - A step in numbers that shows a difference ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_EXAMPLE_H
#define ZERO_PASSES_PROVE_EXAMPLE_H

#include "passes/prove/Algebra.h"

namespace zero::prove {

/// The smallest step on |ranks| ranks, in numbers of backward passes, that
/// shows that |a| is not |expected|: "counterexample: gradients of 2 backward
/// passes are 1 and 2 on rank 0, 10 and 20 on rank 1; rank 0 has 3, expected
/// 33". Empty where the numbers that are tried show no difference.
std::string findExample(Algebra &algebra, Expr a, Expr expected, int64_t ranks);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_EXAMPLE_H
