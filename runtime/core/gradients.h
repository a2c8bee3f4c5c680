//===- gradients.h - What every gradient is checked for ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_GRADIENTS_H
#define ZERO_RT_CORE_GRADIENTS_H

#include "core/step.h"

namespace zero_rt {

/// Checks that |tensor| may be a gradient of |parameter|, which was checked.
zero_rt_status checkGradient(const Step &step, int32_t parameter,
                             const zero_rt_tensor &tensor);

/// Checks that one more piece of the gradient of |parameter| may arrive in a
/// backward pass in which |arrivals| pieces have arrived.
zero_rt_status checkUses(const Step &step, int32_t parameter, int64_t arrivals);

/// Makes |tensor| a gradient that waits for its bucket. With |outRelease| the
/// gradient waits in the caller's memory, and *outRelease is its release.
/// Otherwise it waits in a copy.
zero_rt_status makeWaiting(Step &step, int32_t parameter,
                           const zero_rt_tensor &tensor, zero_rt_stream *stream,
                           zero_rt_timepoint *outRelease, WaitingGradient &out);

} // namespace zero_rt

#endif // ZERO_RT_CORE_GRADIENTS_H
