//===- results.cpp - What the last apply did ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks agree to refuse a step through the statistics that are reduced
// anyway. A device may be far behind the calls. Therefore `commit` does not
// wait: it queues a copy of the scalars, and posts the report of this rank for
// the others. `results` waits for the copy and, if the step was refused,
// collects the reports of all ranks. An immediate device does both at once, and
// posts a report only if the others need it.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/inputs.h"
#include "core/protocol.h"
#include "core/refusal_reports.h"
#include "core/step.h"
#include "core/structs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace zero_rt;

/// Posts the report of this rank about the step for the others.
static zero_rt_status post(Step &step) {
  const Window &window = step.window;
  Report mine;
  mine.backwards = window.backwards();
  mine.missing = window.missing();
  for (size_t i = 0; i < window.firstMissing().size(); ++i)
    mine.first[i] = window.firstMissing()[i];
  for (int64_t i = 0; i < step.library->num_inputs; ++i)
    if (step.library->inputs[i].tokens)
      mine.tokens = step.inputs[size_t(i)];

  const std::vector<NonfiniteGradient> &found = step.nonfinite.all();
  mine.nonfinite = int64_t(found.size());
  for (size_t i = 0; i < std::min(found.size(), Window::maxNamed); ++i)
    mine.firstNonfinite[i] = found[i];

  std::vector<BadInput> bad = findBadInputs(step);
  mine.badInputs = int64_t(bad.size());
  for (size_t i = 0; i < std::min(bad.size(), Window::maxNamed); ++i)
    mine.firstBad[i] = bad[i];
  mine.inputDigest = digestInputs(step);
  std::vector<int32_t> common = listCommonInputs(step);
  for (size_t i = 0; i < std::min(common.size(), Report::maxInputs); ++i)
    mine.inputs[i] = step.inputs[size_t(common[i])];

  // A message may still be in transit. Ranks of an immediate device come here
  // only if one is missing.
  MessageName unread;
  mine.hasUnread =
      step.library->num_activations > 0 &&
      findUnread(step, step.device().isImmediate(), unread, mine.unreadFrom);
  mine.unreadActivation = unread.activation;
  mine.unreadIsGradient = unread.isGradient;
  mine.unreadMicroBatch = unread.microBatch;

  return step.runtime->communicator->post(step.id, step.last.turn, &mine,
                                          int64_t(sizeof(Report)));
}

/// Finds out from the reports of all ranks why they refused or skipped the
/// step.
static zero_rt_status explain(Step &step, int32_t verdict) {
  if (step.device().isImmediate())
    ZERO_RT_TRY(post(step));
  std::vector<Report> reports(size_t(step.runtime->ranks));
  Tag tag = {"commit", nullptr, verdict, ZERO_RT_F64, ZERO_RT_F64, step.id};
  ZERO_RT_TRY(step.runtime->communicator->collect(
      tag, step.last.turn, reports.data(), int64_t(sizeof(Report))));
  ZERO_RT_TRY(checkReports(step, reports));
  // A program counts an input that fails its check, or that differs, as a
  // missing gradient. All ranks have the same reports, so they agree on the
  // cause.
  std::string inputs = inputsText(step, reports);
  bool isBad = !inputs.empty();
  if (!isBad)
    inputs = differentInputsText(step, reports);
  if (verdict == ZERO_RT_REFUSED_MISSING_GRADIENT && !inputs.empty() &&
      !anyMissing(reports)) {
    step.last.results.verdict = ZERO_RT_REFUSED_INPUT;
    step.last.refusal = isBad ? ZERO_RT_INVALID_ARGUMENT : ZERO_RT_MISMATCH;
    step.last.message = "step refused: " + inputs;
    return ZERO_RT_OK;
  }
  switch (verdict) {
  case ZERO_RT_REFUSED_MISSING_GRADIENT:
    step.last.refusal = ZERO_RT_MISSING_GRADIENT;
    step.last.message = missingText(step, reports);
    break;
  case ZERO_RT_SKIPPED_NONFINITE:
    step.last.message = "step skipped: " + nonfiniteText(step, reports);
    break;
  case ZERO_RT_REFUSED_NONFINITE:
    step.last.message = "step refused: " + nonfiniteText(step, reports);
    break;
  case ZERO_RT_REFUSED_NO_TOKENS:
    step.last.refusal = ZERO_RT_INVALID_ARGUMENT;
    step.last.message = tokensText(reports);
    break;
  default:
    step.last.refusal = ZERO_RT_MISMATCH;
    step.last.message = unequalText(reports);
  }
  if (!inputs.empty())
    step.last.message += "; " + inputs;
  return ZERO_RT_OK;
}

/// Waits for the scalars that `commit` copied, and fills the results.
static zero_rt_status resolveOutcome(Step &step) {
  const zero_rt_library &library = *step.library;
  Committed &last = step.last;
  double value = last.slots[last.verdictSlot];
  // The condition is written so that nan is refused, too.
  if (!(value >= ZERO_RT_APPLIED && value <= ZERO_RT_REFUSED_NO_TOKENS) ||
      value != double(int32_t(value)))
    return fail(ZERO_RT_INTERNAL, "commit: %g is not an outcome", value);
  int32_t verdict = int32_t(value);

  last.results.verdict = verdict;
  for (int64_t i = 0; i < library.num_results; ++i)
    last.values[size_t(i)] = last.slots[library.results[i].slot];
  last.results.values = last.values.data();
  last.results.num_values = int32_t(library.num_results);
  bool isNonfinite = verdict == ZERO_RT_SKIPPED_NONFINITE ||
                     verdict == ZERO_RT_REFUSED_NONFINITE;
  if (verdict == ZERO_RT_REFUSED_NONFINITE) {
    last.refusal = ZERO_RT_NONFINITE;
    last.message = "step refused: a gradient is not finite";
  }
  // Only find_nonfinite reports which gradient is not finite.
  if (isNonfinite ? step.runtime->findNonfinite : verdict != ZERO_RT_APPLIED)
    ZERO_RT_TRY(explain(step, verdict));
  last.resolved = true;
  return ZERO_RT_OK;
}

zero_rt_status calls::commit(Step *step, int32_t verdict_slot) {
  ZERO_RT_TRY(checkSlots(*step, "commit", verdict_slot, 1));
  Committed &last = step->last;
  ++last.turn;
  last.verdictSlot = verdict_slot;
  last.results = {};
  last.results.backwards = step->window.backwards();
  last.refusal = ZERO_RT_OK;
  last.message.clear();
  last.resolved = false;
  Device &device = step->device();
  if (!device.isImmediate())
    ZERO_RT_TRY(post(*step));
  double *slots = nullptr;
  ZERO_RT_TRY(step->getSlots(&slots));
  ZERO_RT_TRY(device.copy(last.slots, slots, step->slotBlock.bytes));
  last.committed = true;
  if (device.isImmediate())
    return resolveOutcome(*step);
  return markResults(*step);
}

zero_rt_status zero_rt::markResults(Step &step) {
  if (step.device().isImmediate())
    return ZERO_RT_OK;
  step.last.timepoint = ++step.runtime->timepoints;
  return step.device().mark(step.last.timepoint);
}

zero_rt_status calls::count_arrivals(Step *step, int32_t backwards_slot,
                                     int32_t missing_slot) {
  ZERO_RT_TRY(checkSlots(*step, "count_arrivals", backwards_slot, 1));
  ZERO_RT_TRY(checkSlots(*step, "count_arrivals", missing_slot, 1));
  ZERO_RT_TRY(
      step->program->setSlot(backwards_slot, double(step->window.backwards())));
  // If the sum over the ranks is 0, no gradient is missing, everything that was
  // sent was received, and all inputs are right.
  return step->program->setSlot(missing_slot,
                                double(step->window.missing() +
                                       countSentLessReceived(*step) +
                                       int64_t(findBadInputs(*step).size()) +
                                       countDifferentInputs(*step)));
}

zero_rt_status calls::count_delivered(Step *step, int32_t parameter,
                                      int32_t slot) {
  ZERO_RT_TRY(checkSlots(*step, "count_delivered", slot, 1));
  // A parameter of another pipeline stage is a row of this one, too.
  int64_t parameters = step->library->num_parameters;
  if (parameter < 0 || parameter >= parameters)
    return fail(ZERO_RT_INTERNAL, "count_delivered: parameter %d of %lld",
                parameter, (long long)parameters);
  return step->program->setSlot(slot,
                                double(step->window.delivered(parameter)));
}

zero_rt_status calls::results(Step *step, zero_rt_results *out_results) {
  ZERO_RT_TRY(checkStruct(out_results, "out_results"));
  const Committed &last = step->last;
  if (!last.begun)
    return fail(ZERO_RT_PROTOCOL, "results of '%s' before the first apply",
                step->library->name);
  if (!last.committed)
    return fail(ZERO_RT_INTERNAL, "the last apply of '%s' never committed",
                step->library->name);
  ZERO_RT_TRY(step->device().wait(last.timepoint));
  if (!last.resolved)
    ZERO_RT_TRY(resolveOutcome(*step));
  writeStruct(last.results, out_results);
  // A skipped step is not a failure, but may have a message.
  if (!last.message.empty())
    return fail(last.refusal, "%s", last.message.c_str());
  return ZERO_RT_OK;
}

zero_rt_status calls::loss_scale(Step *step, double *out_scale) {
  if (!out_scale)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_scale is null");
  // What follows decides which scale is the next.
  ZERO_RT_TRY(requireNotMeasured(*step, "loss_scale"));
  int64_t slot = step->library->loss_scale;
  *out_scale = 1;
  if (slot < 0)
    return ZERO_RT_OK;
  double *slots = nullptr;
  ZERO_RT_TRY(step->getSlots(&slots));
  const void *scale = nullptr;
  ZERO_RT_TRY(step->device().look(slots + slot, sizeof(double), &scale));
  std::memcpy(out_scale, scale, sizeof(double));
  return ZERO_RT_OK;
}
