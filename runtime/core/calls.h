//===- calls.h - The calls behind the table ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_CALLS_H
#define ZERO_RT_CORE_CALLS_H

#include "zero_rt/library.h"

namespace zero_rt {

struct Runtime;
struct Step;

/// The implementations of the calls in calls.def. They receive objects instead
/// of handles, may assume that the step is not poisoned, and may throw: the
/// table holds guarded versions.
namespace calls {
using zero_rt_runtime = Runtime;
using zero_rt_step = Step;
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) zero_rt_status NAME ARGUMENTS;
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) zero_rt_status NAME ARGUMENTS;
#include "zero_rt/calls.def"
} // namespace calls

extern const zero_rt_calls callTable;

} // namespace zero_rt

#endif // ZERO_RT_CORE_CALLS_H
