//===- AppliedStep.h - What an applied program leaves -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_APPLIEDSTEP_H
#define ZERO_PASSES_PROVE_APPLIEDSTEP_H

#include "passes/prove/Memory.h"

namespace zero::prove {

/// What an outcome says: 0, 1 or another number.
enum class Decision { applied, skipped, refused };

/// Takes one side of every choice that depends on the committed outcome.
/// |hasTokens|: an applied step has some, or is refused.
void decide(Algebra &algebra, Memory &memory, Expr outcome, Decision decision,
            bool hasTokens);

/// Reads parameters, states, counters and results from |memory|.
void readApplied(Proof &proof, zrt::ProgramOp program, const Buckets &buckets,
                 Memory &memory, StepSemantics &semantics);

/// Reads the loss scale from |memory|, that of a skipped step.
void readSkipped(zrt::ProgramOp program, Memory &memory,
                 StepSemantics &semantics);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_APPLIEDSTEP_H
