//===- AppliedStep.h - The results of an applied program --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_APPLIEDSTEP_H
#define ZERO_PASSES_PROVE_APPLIEDSTEP_H

#include "passes/prove/Memory.h"

namespace zero::prove {

/// The meaning of an outcome: 0, 1 or another number.
enum class Decision { applied, skipped, refused };

/// Whether |condition| says if a step with |outcome| is applied, skipped or
/// refused.
bool isDecided(Expr condition, Expr outcome);

/// Takes one side of every selection that depends on the committed outcome.
/// |hasTokens|: a step without tokens is refused, so an applied step has some.
void decide(Algebra &algebra, Memory &memory, Expr outcome, Decision decision,
            bool hasTokens);

/// |outcome| as it stands in numbers that decide() has seen of an applied step.
Expr getAppliedOutcome(Algebra &algebra, Expr outcome, bool hasTokens);

/// Reads parameters, states, counters and results from |memory|.
void readApplied(Proof &proof, zrt::ProgramOp program, const Buckets &buckets,
                 Memory &memory, StepSemantics &semantics);

/// Reads the results of a skipped step and of a refused one from |memory|
/// before the outcome is decided.
void readResultsIfNotApplied(Algebra &algebra, zrt::ProgramOp program,
                             const Memory &memory, Expr outcome,
                             StepSemantics &semantics);

/// Reads the counters of the loss scale and of schedules from |memory| after a
/// skipped step.
void readSkipped(zrt::ProgramOp program, Memory &memory,
                 StepSemantics &semantics);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_APPLIEDSTEP_H
