//===- preconditions.h - Do callers keep what a proof takes from them? -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is proved for callers that keep the preconditions in its plan. With
// zero_rt_options.check_promises the runtime checks those that it can see.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_PRECONDITIONS_H
#define ZERO_RT_CORE_PRECONDITIONS_H

#include "core/sequence.h"

#include <cstdint>

namespace zero_rt {

struct Step;

/// Compares, over all ranks, which of apply and discard they call (|event|),
/// with which inputs, the state that all of them have whole, and gradients that
/// they promise to deliver alike. An error is
/// the same on all ranks, and the step can still be applied or discarded.
/// Collective, where all buckets are closed; does nothing unless preconditions
/// are checked.
zero_rt_status checkPreconditions(Step &step, int32_t event,
                                  const double *inputs, int64_t numInputs);

/// Remembers that |bytes| at |data| arrived as a gradient of |parameter|.
zero_rt_status noteGradient(Step &step, int32_t parameter, const void *data,
                            int64_t bytes);
/// Forgets what arrived: the backward passes since the last apply are done
/// with.
void forgetGradients(Step &step);

/// What a tensor of the device holds, as a number.
zero_rt_status digestOf(const Step &step, const zero_rt_tensor &tensor,
                        uint64_t *out);

/// Checks that a gradient that waited is what it was when it came.
zero_rt_status checkUntouched(const Step &step,
                              const WaitingGradient &gradient);

} // namespace zero_rt

#endif // ZERO_RT_CORE_PRECONDITIONS_H
