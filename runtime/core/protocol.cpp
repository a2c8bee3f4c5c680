//===- protocol.cpp - The protocol of a library ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library lists the allowed calls; this file never decides what is allowed.
// It uses the window only to tell a caller what to do instead.
//
//===----------------------------------------------------------------------===//

#include "core/protocol.h"

#include "core/calls.h"
#include "core/status.h"

#include <cstdio>

using namespace zero_rt;

static const char *adviceFor(const Step &step, int32_t event) {
  bool open = step.window.isOpen();
  bool none = step.window.backwards() == 0;
  if (step.isMeasured)
    return "the step was measured; call apply or discard first";
  switch (event) {
  case ZERO_RT_EVENT_BEGIN:
  case ZERO_RT_EVENT_BEGIN_LAST:
    if (open)
      return "a backward pass is open; call accumulate, apply or discard first";
    if (!none)
      return "the step was compiled for one backward pass; call apply or "
             "discard first, or compile the step without one_backward";
    break;
  case ZERO_RT_EVENT_ARRIVE:
  case ZERO_RT_EVENT_ACCUMULATE:
    if (!open)
      return "no backward pass is open; call begin_backward first";
    break;
  case ZERO_RT_EVENT_MEASURE:
  case ZERO_RT_EVENT_APPLY:
    if (none)
      return "no backward pass since the last apply; call begin_backward first";
    if (event == ZERO_RT_EVENT_MEASURE)
      return "the compiled protocol does not allow it; compile the step again "
             "with this version";
    break;
  case ZERO_RT_EVENT_DISCARD:
    if (none)
      return "no backward pass since the last apply; there is nothing to "
             "discard";
    break;
  }
  return "the compiled protocol does not allow it; call apply or discard first";
}

zero_rt_status zero_rt::findTransition(const Step &step, int32_t event,
                                       const char *call,
                                       const zero_rt_transition_row **out) {
  *out = step.index.transition(step.state, event);
  if (*out)
    return ZERO_RT_OK;
  return fail(ZERO_RT_PROTOCOL, "%s in state '%s': %s", call, step.stateName(),
              adviceFor(step, event));
}

zero_rt_status zero_rt::runHandler(Step &step, int64_t handler,
                                   const zero_rt_event &event,
                                   const char *call) {
  const zero_rt_library &library = *step.library;
  zero_rt_status status;
  if (library.make_calls) {
    const zero_rt_handler_row &row = library.handler_calls[handler];
    status =
        library.make_calls(step.handle, &event, library.call_words + row.first,
                           row.count, library.call_lists);
  } else {
    status = library.handlers[handler](step.handle, &event);
  }
  if (status)
    poisonStep(step, call, status);
  return status;
}

void zero_rt::poisonStep(Step &step, const char *call, zero_rt_status status) {
  if (step.poisonedBy[0]) // the first cause stays
    return;
  char message[512];
  int64_t inVain = step.window.begunAsLastInVain();
  if (inVain > 0 && (status == ZERO_RT_MISMATCH || status == ZERO_RT_TIMEOUT))
    std::snprintf(message, sizeof(message),
                  "%s; rank %d began backward pass %lld as the last, and "
                  "another one followed: was that so on all ranks?",
                  lastMessage(), step.runtime->rank, (long long)inVain);
  else
    std::snprintf(message, sizeof(message), "%s", lastMessage());
  std::snprintf(step.poisonedBy, sizeof(step.poisonedBy), "%s failed: %s", call,
                message);
  step.runtime->communicator->giveUp(status, step.poisonedBy);
  (void)fail(status, "%s", message);
}

zero_rt_status zero_rt::runTransition(Step &step,
                                      const zero_rt_transition_row &row,
                                      const zero_rt_event &event,
                                      const char *call,
                                      const CallerStream &caller) {
  const zero_rt_library &library = *step.library;
  step.caller = caller;
  zero_rt_status status = ZERO_RT_OK;
  for (int64_t i = row.first; i < row.first + row.count && !status; ++i)
    status = runHandler(step, library.transition_handlers[i], event, call);
  step.caller = {};
  if (!status)
    step.state = row.next;
  return status;
}

zero_rt_status zero_rt::requireIdle(const Step &step, const char *call) {
  if (step.state == 0)
    return ZERO_RT_OK;
  return fail(ZERO_RT_PROTOCOL,
              "%s in state '%s': only allowed in state '%s'; call apply or "
              "discard first",
              call, step.stateName(),
              step.text(step.library->protocol_states[0]));
}

int64_t zero_rt::findResumableState(const Step &step) {
  int64_t state = 0;
  for (int32_t event : {ZERO_RT_EVENT_BEGIN, ZERO_RT_EVENT_ACCUMULATE}) {
    const zero_rt_transition_row *row = step.index.transition(state, event);
    // A pipeline stage may have no bucket, and so no accumulator.
    bool hasSums = step.library->accumulators || !step.library->num_buckets;
    if (!row || !hasSums)
      return -1;
    state = row->next;
  }
  return state;
}

zero_rt_status zero_rt::requireClosed(const Step &step, const char *call) {
  if (step.state == 0)
    return ZERO_RT_OK;
  int64_t resumable = findResumableState(step);
  if (resumable < 0)
    return requireIdle(step, call);
  ZERO_RT_TRY(requireNotMeasured(step, call));
  if (step.window.isOpen())
    return fail(ZERO_RT_PROTOCOL,
                "%s: a backward pass is open; call accumulate, apply or "
                "discard first",
                call);
  if (!step.backwards.empty())
    return fail(ZERO_RT_PROTOCOL,
                "%s: backward pass %lld has begun; call end_backward and "
                "accumulate first",
                call, (long long)step.backwards.rbegin()->first);
  if (step.state == resumable)
    return ZERO_RT_OK;
  return fail(ZERO_RT_PROTOCOL,
              "%s: the last backward pass was begun as the last; call apply "
              "or discard first",
              call);
}

zero_rt_status zero_rt::requireNotMeasured(const Step &step, const char *call) {
  if (!step.isMeasured)
    return ZERO_RT_OK;
  return fail(ZERO_RT_PROTOCOL,
              "%s: the step was measured; call apply or discard first", call);
}

zero_rt_status calls::begin_backward(Step *step, int32_t hint) {
  if (hint < ZERO_RT_HINT_UNKNOWN || hint > ZERO_RT_HINT_MORE)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "hint is %d, expected 0 (unknown), 1 (last) or 2 (more)", hint);
  return beginBackward(*step, hint, "begin_backward");
}

zero_rt_status calls::accumulate(Step *step) {
  const zero_rt_transition_row *row;
  ZERO_RT_TRY(
      findTransition(*step, ZERO_RT_EVENT_ACCUMULATE, "accumulate", &row));
  ZERO_RT_TRY(finishSequence(*step, *row, "accumulate"));
  step->window.close();
  step->backwards.erase(step->window.closedBackwards() - 1);
  // With frozen first layers a backward pass ends before its last unit.
  step->unitOrder.reset();
  return runTransition(*step, *row, {ZERO_RT_EVENT_ACCUMULATE, -1, nullptr},
                       "accumulate");
}
