//===- AppliedStep.h - What an applied program leaves -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_APPLIEDSTEP_H
#define ZERO_PASSES_PROVE_APPLIEDSTEP_H

#include "passes/prove/Memory.h"

namespace zero::prove {

/// Takes one side of every choice that depends on the settled verdict.
void decide(Algebra &algebra, Memory &memory, Expr verdict, bool isApplied);

/// Reads parameters, states, counters and results from |memory|.
void readApplied(Proof &proof, zrt::ProgramOp program, const Buckets &buckets,
                 Memory &memory, Meaning &meaning);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_APPLIEDSTEP_H
