//===- refusal_reports.h - Why ranks refused a step -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks send each other reports about a step that was refused or skipped, and
// each rank makes the same message of them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_REFUSAL_REPORTS_H
#define ZERO_RT_CORE_REFUSAL_REPORTS_H

#include "core/step.h"

#include <type_traits>

namespace zero_rt {

/// An input that fails its check.
struct BadInput {
  int32_t input = 0;
  int32_t reserved = 0;
  double value = 0;
};

/// The message of a rank to the others about a refused step.
struct Report {
  static constexpr size_t maxInputs = 30;

  int64_t backwards = 0;
  int64_t missing = 0;
  double tokens = 0;
  MissingGradient first[Window::maxNamed] = {};
  int64_t nonfinite = 0;
  NonfiniteGradient firstNonfinite[Window::maxNamed] = {};
  int64_t badInputs = 0;
  BadInput firstBad[Window::maxNamed] = {};
  int32_t hasUnread = 0; // a message that was not received
  int32_t unreadFrom = 0;
  int32_t unreadActivation = 0;
  int32_t unreadIsGradient = 0;
  int64_t unreadMicroBatch = 0;
  uint64_t inputDigest = 0;
  double inputs[maxInputs] = {}; // the first of listCommonInputs
};
static_assert(std::has_unique_object_representations_v<MissingGradient> &&
                  std::has_unique_object_representations_v<NonfiniteGradient>,
              "padding would be sent");

/// An error if a rank sent bytes that cannot be a report about |step|.
zero_rt_status checkReports(const Step &step,
                            const std::vector<Report> &reports);

/// Whether a rank knows of a gradient or an activation that is missing.
bool anyMissing(const std::vector<Report> &reports);
/// Names the inputs that fail their checks, and their ranks; empty if there are
/// none.
std::string inputsText(const Step &step, const std::vector<Report> &reports);
/// Names the first input that ranks did not pass alike; empty if there is none
/// in the reports.
std::string differentInputsText(const Step &step,
                                const std::vector<Report> &reports);
std::string missingText(const Step &step, const std::vector<Report> &reports);
std::string unequalText(const std::vector<Report> &reports);
std::string tokensText(const std::vector<Report> &reports);
/// Names the gradients that are not finite, and their ranks.
std::string nonfiniteText(const Step &step, const std::vector<Report> &reports);

} // namespace zero_rt

#endif // ZERO_RT_CORE_REFUSAL_REPORTS_H
