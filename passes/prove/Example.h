//===- Example.h - Counterexamples in numbers -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_EXAMPLE_H
#define ZERO_PASSES_PROVE_EXAMPLE_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// A counterexample to |a| = |expected| on |ranks| ranks, with the fewest
/// backward passes: "counterexample: gradients of 2 backward passes are 1 and 2
/// on rank 0, 10 and 20 on rank 1; rank 0 has 3, expected 33". Empty if the
/// tried numbers show no difference.
std::string findExample(Algebra &algebra, Expr a, Expr expected, int64_t ranks);

/// Two values of the bases that |isUnknown| for which |a| has two values.
std::string findDependence(Algebra &algebra, Expr a, int64_t ranks,
                           llvm::function_ref<bool(BaseRef)> isUnknown);
/// The same for bases that were never written, or that one rank alone knows.
std::string findDependence(Algebra &algebra, Expr a, int64_t ranks);

/// A number that |expected| holds, and what |actual| makes of it.
std::string findRounding(Precision actual, Precision expected);
/// The same for a type with a mantissa of |bits|.
std::string findRounding(unsigned bits);

/// A gradient that is finite, of which the square is not if it is taken in a
/// type with a mantissa of |bits|.
std::string findOverflow(unsigned bits);

/// What a caller does to come into |situation|.
std::string describeExample(Situation situation, double outcome);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_EXAMPLE_H
