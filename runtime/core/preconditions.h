//===- preconditions.h - What a proof takes from callers --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof of a step assumes that callers keep the preconditions in its plan.
// With zero_rt_options.check_promises the runtime checks the preconditions that
// it can see.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_PRECONDITIONS_H
#define ZERO_RT_CORE_PRECONDITIONS_H

#include "core/sequence.h"

#include <cstdint>

namespace zero_rt {

struct Step;

/// Compares over all ranks the call (|event|: measure, apply or discard), its
/// inputs, the state that every rank has whole, and the gradients that several
/// ranks must deliver alike. An error is the same on all ranks, and the step
/// can still be applied or discarded. Collective; all buckets are closed. Does
/// nothing unless preconditions are checked.
zero_rt_status checkPreconditions(Step &step, int32_t event);

/// Remembers that |bytes| at |data| arrived as a gradient of |parameter|.
zero_rt_status noteGradient(Step &step, int32_t parameter, const void *data,
                            int64_t bytes);
/// Forgets the gradients of the backward passes since the last apply.
void forgetGradients(Step &step);

/// A digest of the contents of a tensor of the device.
zero_rt_status digestOf(const Step &step, const zero_rt_tensor &tensor,
                        uint64_t *out);

/// Checks that a gradient that waited for its bucket did not change since its
/// arrival.
zero_rt_status checkUntouched(const Step &step,
                              const WaitingGradient &gradient);

} // namespace zero_rt

#endif // ZERO_RT_CORE_PRECONDITIONS_H
