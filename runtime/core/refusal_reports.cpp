//===- refusal_reports.cpp - Why ranks refused a step ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/refusal_reports.h"

#include "core/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace zero_rt;

/// Whether the |count| first of |list|, as far as they are told, have numbers
/// below |end|.
template <typename List, typename Number>
static bool areInRange(int64_t count, const List &list, Number number,
                       int64_t end) {
  constexpr int64_t most = int64_t(1) << 40; // sums of counts stay exact
  if (count < 0 || count > most)
    return false;
  for (size_t i = 0; i < std::size(list) && int64_t(i) < count; ++i)
    if (list[i].*number < 0 || list[i].*number >= end)
      return false;
  return true;
}

zero_rt_status zero_rt::checkReports(const Step &step,
                                     const std::vector<Report> &reports) {
  const zero_rt_library &library = *step.library;
  for (size_t r = 0; r < reports.size(); ++r) {
    const Report &report = reports[r];
    if (!areInRange(report.missing, report.first, &MissingGradient::parameter,
                    library.num_parameters) ||
        !areInRange(report.nonfinite, report.firstNonfinite,
                    &NonfiniteGradient::parameter, library.num_parameters) ||
        !areInRange(report.badInputs, report.firstBad, &BadInput::input,
                    library.num_inputs))
      return fail(ZERO_RT_MISMATCH,
                  "rank %zu sent bytes that are no report about its step", r);
  }
  return ZERO_RT_OK;
}

/// Describes how |gradient| is incomplete.
static std::string describeGradient(const Step &step,
                                    const MissingGradient &gradient) {
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

std::string zero_rt::missingText(const Step &step,
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
      text += std::string(named++ ? ", " : " ") +
              describeGradient(step, gradient) + " on rank " +
              std::to_string(r) + " (backward pass " +
              std::to_string(gradient.backward) + " of " +
              std::to_string(report.backwards) + ")";
    }
  }
  if (total > named)
    text += " and " + std::to_string(total - named) + " more";
  for (size_t r = 0; r < reports.size(); ++r) {
    if (!reports[r].hasUnread || named >= 2 * int64_t(Window::maxNamed))
      continue;
    MessageName unread;
    unread.activation = reports[r].unreadActivation;
    unread.isGradient = reports[r].unreadIsGradient != 0;
    unread.microBatch = reports[r].unreadMicroBatch;
    text += std::string(named++ ? ", " : " ") +
            describe(step, unread, reports[r].unreadFrom) +
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

/// All digits of |number|.
static std::string exactText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", number);
  return text;
}

static std::string describeInput(const Step &step, int32_t input) {
  const zero_rt_library &library = *step.library;
  const char *name =
      library.input_names ? step.text(library.input_names[input]) : "";
  if (!*name)
    name = step.text(library.inputs[input].name);
  std::string text = "input " + std::to_string(input);
  return *name ? text + " ('" + name + "')" : text;
}

std::string zero_rt::inputsText(const Step &step,
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
      text += (named++ ? ", " : "") + describeInput(step, bad.input);
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

std::string zero_rt::differentInputsText(const Step &step,
                                         const std::vector<Report> &reports) {
  std::vector<int32_t> inputs = listCommonInputs(step);
  if (inputs.empty())
    return "";
  size_t known = std::min(inputs.size(), Report::maxInputs);
  for (size_t r = 1; r < reports.size(); ++r)
    for (size_t i = 0; i < known; ++i) {
      double mine = reports[0].inputs[i], theirs = reports[r].inputs[i];
      if (mine == theirs)
        continue;
      std::string one = numberText(mine), other = numberText(theirs);
      if (one == other) {
        one = exactText(mine);
        other = exactText(theirs);
      }
      return describeInput(step, inputs[i]) + " of apply is " + one +
             " on rank 0 and " + other + " on rank " + std::to_string(r) +
             "; pass the same on all ranks";
    }
  for (size_t r = 1; r < reports.size(); ++r)
    if (reports[r].inputDigest != reports[0].inputDigest)
      return "an input of apply after input " +
             std::to_string(inputs[known - 1]) +
             " differs between rank 0 and rank " + std::to_string(r) +
             "; pass the same on all ranks";
  return "";
}

bool zero_rt::anyMissing(const std::vector<Report> &reports) {
  return std::any_of(reports.begin(), reports.end(), [](const Report &report) {
    return report.missing > 0 || report.hasUnread;
  });
}

std::string zero_rt::unequalText(const std::vector<Report> &reports) {
  std::string text =
      "step refused: ranks made unequal numbers of backward passes:";
  for (size_t r = 0; r < reports.size(); ++r)
    text += (r ? ", rank " : " rank ") + std::to_string(r) + " made " +
            std::to_string(reports[r].backwards);
  return text;
}

std::string zero_rt::tokensText(const std::vector<Report> &reports) {
  std::string text = "step refused: the number of tokens must be positive:";
  for (size_t r = 0; r < reports.size(); ++r) {
    text += (r ? ", rank " : " rank ") + std::to_string(r) + " counted " +
            numberText(reports[r].tokens);
  }
  return text;
}

std::string zero_rt::nonfiniteText(const Step &step,
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
