//===- accumulation.cpp - Checkpoints within a step -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/accumulation.h"

#include "core/calls.h"
#include "core/protocol.h"

#include <algorithm>

using namespace zero_rt;

zero_rt_status zero_rt::requireSavableState(const Step &step,
                                            const char *call) {
  ZERO_RT_TRY(requireClosed(step, call));
  if (step.window.missing() == 0)
    return ZERO_RT_OK;
  const MissingGradient &missing = step.window.firstMissing().front();
  return fail(ZERO_RT_PROTOCOL,
              "%s: the gradient of '%s' did not arrive whole in backward pass "
              "%d, so this step will be refused; call discard first",
              call, step.parameterName(missing.parameter), missing.backward);
}

zero_rt_status zero_rt::checkResumable(const Step &step,
                                       const CheckpointIndex &index) {
  const zero_rt_library &library = *step.library;
  if (findResumableState(step) < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint has the gradients of %lld backward passes, and "
                "this step takes one; load the begin of that step",
                (long long)index.backwards);
  int64_t axes = 0;
  for (int64_t b = 0; b < library.num_buckets; ++b)
    axes |= library.accumulators[b].arrives;
  for (int64_t a = 0; a < library.num_axes; ++a) {
    const char *name = step.text(library.axes[a].name);
    auto found =
        std::find_if(index.mesh.begin(), index.mesh.end(),
                     [&](const auto &axis) { return axis.first == name; });
    int64_t saved = found == index.mesh.end() ? 1 : found->second;
    if ((axes >> a & 1) && saved != library.axes[a].size)
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "checkpoint has gradients of %lld ranks over '%s' within a "
                  "step, and this step has %lld; load it on as many, or load "
                  "the begin of that step",
                  (long long)saved, name, (long long)library.axes[a].size);
  }
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::resumeAccumulation(Step &step, int64_t backwards) {
  ZERO_RT_TRY(beginBackward(step, ZERO_RT_HINT_UNKNOWN, "load"));
  ZERO_RT_TRY(calls::accumulate(&step));
  step.window.resume(backwards);
  return ZERO_RT_OK;
}

zero_rt_status calls::backward_passes(Step *step, int64_t *out_count) {
  if (!out_count)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_count is null");
  *out_count = step->window.closedBackwards();
  return ZERO_RT_OK;
}
