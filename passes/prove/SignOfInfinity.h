//===- SignOfInfinity.h - Quotients that a step may compare -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_SIGNOFINFINITY_H
#define ZERO_PASSES_PROVE_SIGNOFINFINITY_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// Checks that no number of |semantics| depends on the sign of a quotient that
/// is infinite because its divisor is 0. Reason: over the reals -x and 0 - x
/// are equal. Where x is 0 the first is -0 and the second 0, so quotients by
/// them are infinite with opposite signs. A comparison, a minimum or a maximum
/// makes finite numbers of them that differ.
///
/// Such a quotient may be selected by a condition that does not hold where the
/// divisor is 0.
void checkQuotients(Proof &proof, const StepSemantics &semantics);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_SIGNOFINFINITY_H
