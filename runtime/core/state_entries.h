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

/// Writes elements |range| of a bucket to |buffer|, which holds them. The
/// elements are at |values|, in |dtype|, and are rounded if |buffer| is
/// narrower. The device may still read |values| when this function returns.
zero_rt_status writeElements(Step &step, int64_t buffer, Range range,
                             int64_t dtype, const void *values);

/// Copies the elements of |range| that |source| and |target| both hold to
/// |target|. The device may still copy when this function returns.
zero_rt_status derive(Step &step, int64_t source, int64_t target, Range range);

/// Refuses |call| while a parameter lacks values of master weights of other
/// ranks.
zero_rt_status requireWhole(const Step &step, const char *call);

/// Checks that each parameter has the values of its master weights, as far as
/// this rank can know, and forgets which state the caller has written.
zero_rt_status closeWrites(Step &step, const char *call);

/// If preconditions are checked, and a step begins: checks that the caller has
/// declared its writes to views of parameters. A parameter that state_write
/// gave other values than its master weights is no error.
zero_rt_status checkUnwritten(Step &step, const char *call);

} // namespace zero_rt

#endif // ZERO_RT_CORE_STATE_ENTRIES_H
