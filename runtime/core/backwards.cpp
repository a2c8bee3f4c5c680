//===- backwards.cpp - Backward passes under way together -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/backwards.h"

#include "core/calls.h"
#include "core/gradients.h"
#include "core/protocol.h"
#include "core/state_entries.h"
#include "core/structs.h"

#include <algorithm>

using namespace zero_rt;

/// More concurrent backward passes than any schedule has. Dropping a backward
/// pass runs all of them, so the number must be bounded.
static constexpr int64_t maxAhead = 1024;

/// The number of the open backward pass or, if none is open, of the next one.
static int64_t currentOf(const Step &step) {
  return step.window.closedBackwards();
}

zero_rt_status zero_rt::beginBackward(Step &step, int32_t hint,
                                      const char *call) {
  const zero_rt_transition_row *row = nullptr;
  if (hint == ZERO_RT_HINT_LAST)
    row = step.index.transition(step.state, ZERO_RT_EVENT_BEGIN_LAST);
  if (!row)
    ZERO_RT_TRY(findTransition(step, ZERO_RT_EVENT_BEGIN, call, &row));
  ZERO_RT_TRY(closeWrites(step, call));
  step.window.begin(row->event == ZERO_RT_EVENT_BEGIN_LAST);
  beginSequence(step);
  ZERO_RT_TRY(
      runTransition(step, *row, {int32_t(row->event), -1, nullptr}, call));
  auto found = step.backwards.find(currentOf(step));
  if (found == step.backwards.end())
    return ZERO_RT_OK;
  return arriveAll(step, found->second.waiting, call);
}

/// Closes the backward passes that have ended and begins the ones that were
/// named, as far as their order allows.
static zero_rt_status advance(Step &step, const char *call) {
  while (!step.backwards.empty()) {
    if (!step.window.isOpen())
      ZERO_RT_TRY(beginBackward(step, ZERO_RT_HINT_UNKNOWN, call));
    // The last one stays open, because the next call may be apply or begin
    // another one.
    const auto &[number, named] = *step.backwards.begin();
    bool isLast = step.backwards.size() == 1;
    if (number != currentOf(step) || !named.isEnded || isLast)
      break;
    ZERO_RT_TRY(calls::accumulate(&step));
  }
  return ZERO_RT_OK;
}

static zero_rt_status failEnded(const char *call, int64_t backward) {
  return fail(
      ZERO_RT_PROTOCOL,
      "%s: backward pass %lld has ended; backward passes are numbered from 0 "
      "after each apply",
      call, (long long)backward);
}

zero_rt_status zero_rt::checkNotEnded(const Step &step, const char *call) {
  auto found = step.backwards.find(currentOf(step));
  return found != step.backwards.end() && found->second.isEnded
             ? failEnded(call, currentOf(step))
             : ZERO_RT_OK;
}

static zero_rt_status checkBackward(const Step &step, const char *call,
                                    int64_t backward) {
  ZERO_RT_TRY(requireNotMeasured(step, call));
  if (backward < 0 || backward > currentOf(step) + maxAhead)
    return fail(
        ZERO_RT_INVALID_ARGUMENT,
        "%s: backward pass is %lld, expected 0 to %lld: at most %lld more "
        "than the open one",
        call, (long long)backward, (long long)(currentOf(step) + maxAhead),
        (long long)maxAhead);
  auto found = step.backwards.find(backward);
  if (backward < currentOf(step) ||
      (found != step.backwards.end() && found->second.isEnded))
    return failEnded(call, backward);
  return ZERO_RT_OK;
}

zero_rt_status calls::gradient_of(Step *step, int64_t backward,
                                  int32_t parameter,
                                  const zero_rt_tensor *tensor,
                                  zero_rt_stream *stream,
                                  zero_rt_timepoint *out_release) {
  if (out_release)
    *out_release = 0;
  ZERO_RT_TRY(checkBackward(*step, "gradient_of", backward));
  ZERO_RT_TRY(checkParameter(*step, parameter));
  zero_rt_tensor given;
  ZERO_RT_TRY(readStruct(tensor, "tensor", given));
  ZERO_RT_TRY(checkGradient(*step, parameter, given));
  NamedBackward &named = step->backwards[backward];
  ZERO_RT_TRY(advance(*step, "gradient_of"));
  if (backward == currentOf(*step))
    return gradient(step, parameter, tensor, stream, out_release);
  int64_t arrivals = std::count_if(
      named.waiting.begin(), named.waiting.end(),
      [&](const WaitingGradient &g) { return g.parameter == parameter; });
  ZERO_RT_TRY(checkUses(*step, parameter, arrivals));
  WaitingGradient waiting;
  ZERO_RT_TRY(
      makeWaiting(*step, parameter, given, stream, out_release, waiting));
  named.waiting.push_back(waiting);
  return ZERO_RT_OK;
}

zero_rt_status calls::end_backward(Step *step, int64_t backward) {
  ZERO_RT_TRY(checkBackward(*step, "end_backward", backward));
  step->backwards[backward].isEnded = true;
  return advance(*step, "end_backward");
}

zero_rt_status zero_rt::openLastBackward(Step &step, const char *call) {
  ZERO_RT_TRY(advance(step, call));
  if (step.backwards.empty() ||
      step.backwards.rbegin()->first < step.window.backwards())
    return ZERO_RT_OK;
  return fail(
      ZERO_RT_PROTOCOL,
      "%s: backward pass %lld has begun, and backward pass %lld has not "
      "ended; call end_backward for it first",
      call, (long long)step.backwards.rbegin()->first,
      (long long)currentOf(step));
}

zero_rt_status zero_rt::runToLastBackward(Step &step, const char *call) {
  if (step.backwards.empty())
    return ZERO_RT_OK;
  for (int64_t b = currentOf(step); b <= step.backwards.rbegin()->first; ++b)
    step.backwards[b].isEnded = true;
  return advance(step, call);
}

void zero_rt::dropBackwards(Step &step) {
  for (auto &[number, named] : step.backwards)
    for (WaitingGradient &gradient : named.waiting)
      releaseWaiting(step, gradient);
  step.backwards.clear();
}
