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
#include "core/protocol.h"
#include "core/step.h"
#include "core/structs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace zero_rt;

namespace {

/// An input that fails its check.
struct BadInput {
  int32_t input;
  double value;
};

/// The message of a rank to the others about a refused step.
struct Report {
  int64_t backwards = 0;
  int64_t missing = 0;
  double tokens = 0;
  MissingGradient first[Window::maxNamed] = {};
  int64_t nonfinite = 0;
  NonfiniteGradient firstNonfinite[Window::maxNamed] = {};
  int64_t badInputs = 0;
  BadInput firstBad[Window::maxNamed] = {};
  int32_t hasUnread = 0; // messages that were not received
  int32_t unreadFrom = 0;
  MessageName unread;
};

} // namespace

/// The inputs of this rank that fail their checks.
static std::vector<BadInput> findBadInputs(const Step &step) {
  std::vector<BadInput> bad;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    int64_t check = step.library->inputs[i].check;
    double value = step.inputs[i];
    if ((check != ZERO_RT_INPUT_FREE && !std::isfinite(value)) ||
        (check == ZERO_RT_INPUT_POSITIVE && value <= 0))
      bad.push_back({int32_t(i), value});
  }
  return bad;
}

/// Describes how |gradient| is incomplete.
static std::string describe(const Step &step, const MissingGradient &gradient) {
  std::string text = std::string("gradient of '") +
                     step.parameterName(gradient.parameter) + "'";
  if (gradient.slotOpen)
    return text + " has a gradient view and no gradient_ready";
  if (gradient.pieces == 0)
    return text + " never arrived";
  return text + " arrived in " + std::to_string(gradient.pieces) + " of " +
         std::to_string(step.library->parameters[gradient.parameter].uses) +
         " pieces";
}

static std::string missingText(const Step &step,
                               const std::vector<Report> &reports) {
  std::string text = "step refused:";
  int64_t named = 0;
  int64_t total = 0;
  for (size_t r = 0; r < reports.size(); ++r) {
    const Report &report = reports[r];
    total += report.missing;
    for (size_t i = 0; i < Window::maxNamed; ++i) {
      if (int64_t(i) >= report.missing || named == int64_t(Window::maxNamed))
        break;
      const MissingGradient &gradient = report.first[i];
      text += std::string(named++ ? ", " : " ") + describe(step, gradient) +
              " on rank " + std::to_string(r) + " (backward pass " +
              std::to_string(gradient.backward) + " of " +
              std::to_string(report.backwards) + ")";
    }
  }
  if (total > named)
    text += " and " + std::to_string(total - named) + " more";
  for (size_t r = 0; r < reports.size(); ++r) {
    if (!reports[r].hasUnread || named >= 2 * int64_t(Window::maxNamed))
      continue;
    text += std::string(named++ ? ", " : " ") +
            describe(step, reports[r].unread, reports[r].unreadFrom) +
            " was not received on rank " + std::to_string(r);
  }
  if (named == 0)
    return text + " a gradient is missing, and no rank knows which";
  return text;
}

static std::string numberText(double number) {
  if (std::isnan(number))
    return "nan"; // of either sign
  char text[32];
  std::snprintf(text, sizeof(text), "%g", number);
  return text;
}

/// Names the inputs that fail their checks, and their ranks; empty if there are
/// none.
static std::string inputsText(const Step &step,
                              const std::vector<Report> &reports) {
  std::string text;
  int64_t named = 0;
  int64_t total = 0;
  bool anyPositive = false;
  for (size_t r = 0; r < reports.size(); ++r) {
    const Report &report = reports[r];
    total += report.badInputs;
    for (size_t i = 0; i < Window::maxNamed && int64_t(i) < report.badInputs &&
                       named < int64_t(Window::maxNamed);
         ++i) {
      const BadInput &bad = report.firstBad[i];
      const zero_rt_input_row &row = step.library->inputs[bad.input];
      anyPositive |= row.check == ZERO_RT_INPUT_POSITIVE;
      const char *name = step.text(row.name);
      text += (named++ ? ", input " : "input ") + std::to_string(bad.input);
      if (*name)
        text += std::string(" ('") + name + "')";
      text += " of apply is " + numberText(bad.value) + " on rank " +
              std::to_string(r);
    }
  }
  if (total > named)
    text += " and " + std::to_string(total - named) + " more";
  if (total == 0)
    return text;
  return text + (anyPositive ? "; pass finite numbers, and a positive max norm"
                             : "; pass finite numbers");
}

/// Whether a rank knows of a gradient or an activation that is missing.
static bool anyMissing(const std::vector<Report> &reports) {
  return std::any_of(reports.begin(), reports.end(), [](const Report &report) {
    return report.missing > 0 || report.hasUnread;
  });
}

static std::string unequalText(const std::vector<Report> &reports) {
  std::string text =
      "step refused: ranks made unequal numbers of backward passes:";
  for (size_t r = 0; r < reports.size(); ++r)
    text += (r ? ", rank " : " rank ") + std::to_string(r) + " made " +
            std::to_string(reports[r].backwards);
  return text;
}

static std::string tokensText(const std::vector<Report> &reports) {
  std::string text = "step refused: the number of tokens must be positive:";
  for (size_t r = 0; r < reports.size(); ++r) {
    text += (r ? ", rank " : " rank ") + std::to_string(r) + " counted " +
            numberText(reports[r].tokens);
  }
  return text;
}

/// Names the gradients that are not finite, and their ranks.
static std::string nonfiniteText(const Step &step,
                                 const std::vector<Report> &reports) {
  std::string text;
  size_t named = 0;
  int64_t total = 0;
  for (size_t r = 0; r < reports.size(); ++r) {
    const Report &report = reports[r];
    total += report.nonfinite;
    for (size_t i = 0; i < Window::maxNamed && int64_t(i) < report.nonfinite &&
                       named < Window::maxNamed;
         ++i) {
      const NonfiniteGradient &gradient = report.firstNonfinite[i];
      text += std::string(named++ ? ", gradient of '" : "gradient of '") +
              step.parameterName(gradient.parameter) + "' on rank " +
              std::to_string(r) + " (backward pass " +
              std::to_string(gradient.backward) + " of " +
              std::to_string(report.backwards) + ")";
    }
  }
  if (total == 0)
    return "every gradient is finite, and a sum of them is not";
  if (total > int64_t(named))
    text += " and " + std::to_string(total - int64_t(named)) + " more";
  return text + (total > 1 ? " are not finite" : " is not finite");
}

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

  // All ranks have met since their last send, but a message may still be in
  // transit.
  mine.hasUnread =
      step.library->num_activations > 0 &&
      step.runtime->messenger->findUnread(step.id, step.activations.window,
                                          mine.unread, mine.unreadFrom);

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
  // A program counts an input that fails its check as a missing gradient. All
  // ranks have the same reports, so they agree on the cause.
  std::string inputs = inputsText(step, reports);
  if (verdict == ZERO_RT_REFUSED_MISSING_GRADIENT && !inputs.empty() &&
      !anyMissing(reports)) {
    step.last.results.verdict = ZERO_RT_REFUSED_INPUT;
    step.last.refusal = ZERO_RT_INVALID_ARGUMENT;
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
  // sent was received, and all inputs pass their checks.
  return step->program->setSlot(missing_slot,
                                double(step->window.missing() +
                                       countSentLessReceived(*step) +
                                       int64_t(findBadInputs(*step).size())));
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
