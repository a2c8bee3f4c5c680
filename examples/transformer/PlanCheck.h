//===- PlanCheck.h - The plan's numbers against the runtime's ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_PLANCHECK_H
#define ZERO_EXAMPLES_TRANSFORMER_PLANCHECK_H

#include "examples/transformer/Options.h"
#include "zero_rt/abi.h"

#include <string>

namespace transformer {

/// Prints what train.plan.json beside the library promises for rank 0 and what
/// the runtime counted there. Returns false if traffic or bytes differ; a plan
/// that is not there is only mentioned.
bool comparePlan(const Options &options, int64_t steps,
                 const zero_rt_counters &counters);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_PLANCHECK_H
