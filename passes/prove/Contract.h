//===- Contract.h - What a caller knows of a step ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_CONTRACT_H
#define ZERO_PASSES_PROVE_CONTRACT_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// Reports differences in what the caller of a step numbers or names: the list
/// of parameters, with the frozen ones, the units that are sharded, and the
/// names of inputs.
void compareLists(Proof &proof, const StepSemantics &first,
                  const StepSemantics &second);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_CONTRACT_H
