//===- state_entries.h - Which state a rank holds ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_STATE_ENTRIES_H
#define ZERO_RT_CORE_STATE_ENTRIES_H

#include "core/step.h"

namespace zero_rt {

/// Lists the state of this rank by parameter and role, in the order of the
/// library's rows and then of the parameters.
std::vector<StateEntry> enumerateState(const Step &step);

int64_t bytesOf(const Step &step, const StateEntry &entry);
zero_rt_status dataOf(Step &step, const StateEntry &entry, void **out);

} // namespace zero_rt

#endif // ZERO_RT_CORE_STATE_ENTRIES_H
