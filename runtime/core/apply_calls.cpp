//===- apply_calls.cpp - The calls that end a step ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `measure` and `apply` end the backward passes. `apply` after `measure` runs
// what is left. `discard` may come instead.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/preconditions.h"
#include "core/protocol.h"
#include "core/status.h"
#include "core/units.h"

using namespace zero_rt;

/// Forgets the backward passes. The step begins anew.
static void endStep(Step &step) {
  step.isMeasured = false;
  step.window.reset();
  step.unitOrder.reset();
  forgetGradients(step);
  step.nonfinite.reset();
  dropWaiting(step);
  dropBackwards(step);
  endWindow(step);
}

zero_rt_status calls::discard(Step *step) {
  ZERO_RT_TRY(requireSharded(*step, "discard"));
  if (!step->isMeasured)
    ZERO_RT_TRY(runToLastBackward(*step, "discard"));
  // A pipeline stage may have sent or received without a backward pass. Windows
  // end together on all stages.
  if (step->window.backwards() == 0 && step->library->num_activations > 0) {
    ZERO_RT_TRY(checkPreconditions(*step, ZERO_RT_EVENT_DISCARD));
    endWindow(*step);
    return ZERO_RT_OK;
  }
  const zero_rt_transition_row *row;
  ZERO_RT_TRY(findTransition(*step, ZERO_RT_EVENT_DISCARD, "discard", &row));
  ZERO_RT_TRY(finishSequence(*step, *row, "discard"));
  ZERO_RT_TRY(checkPreconditions(*step, ZERO_RT_EVENT_DISCARD));
  ZERO_RT_TRY(runTransition(*step, *row, {ZERO_RT_EVENT_DISCARD, -1, nullptr},
                            "discard"));
  endStep(*step);
  return ZERO_RT_OK;
}

/// Checks the inputs of apply or measure. After measure they are known already.
static zero_rt_status checkInputs(const Step &step, const char *call,
                                  const double *inputs, int32_t numInputs) {
  const zero_rt_library &library = *step.library;
  if (step.isMeasured && !inputs && numInputs == 0)
    return ZERO_RT_OK;
  if (numInputs != library.num_inputs)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s got %d input%s, '%s' takes %lld",
                call, numInputs, plural(numInputs), library.name,
                (long long)library.num_inputs);
  if (!inputs && numInputs)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s: inputs is null", call);
  for (int32_t i = 0; step.isMeasured && i < numInputs; ++i)
    if (bitCast<uint64_t>(inputs[i]) !=
        bitCast<uint64_t>(step.inputs[size_t(i)]))
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "input %d ('%s') of %s is %.17g, and that of measure was "
                  "%.17g: pass the same, or discard the step",
                  i, step.text(library.inputs[i].name), call, inputs[i],
                  step.inputs[size_t(i)]);
  return ZERO_RT_OK;
}

/// Closes the open backward pass and runs the handlers of |row|.
static zero_rt_status runEnd(Step &step, const zero_rt_transition_row &row,
                             const char *call, zero_rt_stream *stream) {
  const zero_rt_library &library = *step.library;
  if (!step.isMeasured)
    for (int64_t i = 0; i < library.num_inputs; ++i)
      ZERO_RT_TRY(step.program->setSlot(library.inputs[i].slot,
                                        step.inputs[size_t(i)]));

  ZERO_RT_TRY(finishSequence(step, row, call));
  // Only now have all ranks run the same number of collectives: a rank with a
  // late gradient closes here the buckets that other ranks closed before.
  ZERO_RT_TRY(checkPreconditions(step, int32_t(row.event)));
  step.window.close();
  if (!step.isMeasured) {
    step.last.begun = true;
    step.last.committed = false;
  }
  return runTransition(step, row, {int32_t(row.event), -1, nullptr}, call,
                       {CallerStream::Delivery::Now, stream});
}

/// Measure or apply, by |event|.
static zero_rt_status end(Step &step, int32_t event, const char *call,
                          const double *inputs, int32_t numInputs,
                          zero_rt_stream *stream) {
  ZERO_RT_TRY(checkInputs(step, call, inputs, numInputs));
  ZERO_RT_TRY(requireSharded(step, call));
  if (!step.isMeasured)
    ZERO_RT_TRY(openLastBackward(step, call));
  const zero_rt_transition_row *row;
  ZERO_RT_TRY(findTransition(step, event, call, &row));
  if (!step.isMeasured)
    step.inputs.assign(inputs, inputs + numInputs);
  ZERO_RT_TRY(step.program->beginGraphs());
  zero_rt_status status =
      guarded(call, [&] { return runEnd(step, *row, call, stream); });
  // An error of the device comes before other errors.
  if (zero_rt_status ended = step.program->endGraphs()) {
    poisonStep(step, call, ended);
    return ended;
  }
  return status;
}

zero_rt_status calls::measure(Step *step, const double *inputs,
                              int32_t num_inputs, zero_rt_stream *stream) {
  ZERO_RT_TRY(
      end(*step, ZERO_RT_EVENT_MEASURE, "measure", inputs, num_inputs, stream));
  step->isMeasured = true;
  return ZERO_RT_OK;
}

zero_rt_status calls::apply(Step *step, const double *inputs,
                            int32_t num_inputs, zero_rt_stream *stream) {
  ZERO_RT_TRY(
      end(*step, ZERO_RT_EVENT_APPLY, "apply", inputs, num_inputs, stream));
  // The program has committed before it updated, so results wait for more.
  if (step->isMeasured)
    ZERO_RT_TRY(markResults(*step));
  endStep(*step);
  return ZERO_RT_OK;
}
