//===- accumulation.cpp - Checkpoints within a step -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/accumulation.h"

#include "core/calls.h"
#include "core/protocol.h"

#include <map>

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

/// An axis that has other sizes in |index| and here, of ranks that have or had
/// gradients of their own. Empty if there is none.
static std::string findOtherAxis(const Step &step, const CheckpointIndex &index,
                                 int64_t &outSaved, int64_t &outHere) {
  const zero_rt_library &library = *step.library;
  int64_t summed = 0;
  for (int64_t b = 0; b < library.num_buckets; ++b)
    summed |= library.accumulators[b].arrives;
  std::map<std::string, int64_t> saved(index.mesh.begin(), index.mesh.end());
  for (int64_t a = 0; a < library.num_axes; ++a) {
    const char *name = step.text(library.axes[a].name);
    auto found = saved.find(name);
    outSaved = found == saved.end() ? 1 : found->second;
    outHere = library.axes[a].size;
    if ((summed >> a & 1) && outSaved != outHere)
      return name;
    saved.erase(name);
  }
  // Of an axis that is not here, nothing says what its ranks had.
  for (const auto &[name, size] : saved)
    if (size != 1) {
      outSaved = size;
      outHere = 1;
      return name;
    }
  return "";
}

zero_rt_status zero_rt::findResumption(const Step &step,
                                       const CheckpointIndex &index,
                                       Resumption &out) {
  if (findResumableState(step) < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint has the gradients of %lld backward passes, and "
                "this step takes one; load the begin of that step",
                (long long)index.backwards);
  out = {index.backwards, {}};
  int64_t from = index.batchRanks, to = step.whole->batch_ranks;
  if (from == 0 || to == 0) {
    int64_t saved = 0, here = 0;
    std::string axis = findOtherAxis(step, index, saved, here);
    if (axis.empty())
      return ZERO_RT_OK;
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint has gradients of %lld ranks over '%s' within a "
                "step, and this step has %lld; 'normalize' of %s step does not "
                "say which ranks have batches, or that they weigh the same on "
                "other ranks, so load it on as many, or load the begin of that "
                "step",
                (long long)saved, axis.c_str(), (long long)here,
                to == 0 ? "this" : "that");
  }
  int64_t batches = index.backwards * from;
  if (batches % to != 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint has the gradients of %lld backward passes on %lld "
                "ranks, and no number of them on %lld ranks has as many "
                "batches; load the begin of that step",
                (long long)index.backwards, (long long)from, (long long)to);
  if (batches / to > mostBackwards)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "checkpoint has the gradients of %lld backward passes of this "
                "step, expected at most %lld; load the begin of that step",
                (long long)(batches / to), (long long)mostBackwards);
  out = {batches / to, {double(from), double(to)}};
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
