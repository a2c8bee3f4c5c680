//===- ReportJson.cpp - What zero-run prints, as JSON ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Report.h"

#include <cmath>

using namespace zero;
namespace json = llvm::json;

/// JSON has no numbers that are not finite.
static json::Value toJson(double number) {
  if (std::isfinite(number))
    return number;
  if (std::isnan(number))
    return "nan";
  return number > 0 ? "inf" : "-inf";
}

static json::Object toJson(const Difference &difference) {
  return json::Object{
      {"elements", difference.elements},
      {"outside", difference.outside},
      {"uninformative", difference.uninformative},
      {"uninformative_share", difference.getUninformativeShare()},
      {"worst_error", difference.worstError},
      {"worst_share", difference.worstShare}};
}

/// What a rank allocated, launched and sent, under the plan's names.
static json::Value toJson(const zero_rt_counters &counters) {
  static const char *const spaces[] = {"device", "host"};
  static const char *const roles[] = {"parameter", "gradient", "accumulator",
                                      "state",     "scalar",   "staging"};
  json::Object now;
  json::Object peak;
  for (int space = 0; space < 2; ++space) {
    json::Object nowByRole;
    json::Object peakByRole;
    for (int role = 0; role < ZERO_RT_ROLE_COUNT; ++role) {
      nowByRole[roles[role]] = counters.bytes_now[space][role];
      peakByRole[roles[role]] = counters.bytes_peak[space][role];
    }
    now[spaces[space]] = std::move(nowByRole);
    peak[spaces[space]] = std::move(peakByRole);
  }
  return json::Object{
      {"bytes_now", std::move(now)},
      {"bytes_peak", std::move(peak)},
      {"all_reduces", counters.all_reduces},
      {"scalar_all_reduces", counters.scalar_all_reduces},
      {"reduce_scatters", counters.reduce_scatters},
      {"all_gathers", counters.all_gathers},
      {"bytes_sent", counters.bytes_sent},
      {"bytes_copied_between_spaces", counters.bytes_copied_between_spaces}};
}

static json::Object toJson(const StepReport &step,
                           llvm::ArrayRef<std::string> valueNames) {
  const StepResult &result = step.result;
  json::Array values;
  json::Object named;
  for (auto [name, value] : llvm::zip(valueNames, result.values)) {
    values.push_back(toJson(value));
    named[name] = toJson(value);
  }
  json::Array missing;
  for (const MissingGradient &gradient : step.missing)
    missing.push_back(json::Object{{"parameter", gradient.parameter},
                                   {"rank", gradient.rank},
                                   {"backward", gradient.backward}});
  return json::Object{
      {"step", step.index},           {"accumulation", result.backwards},
      {"loss_scale", step.lossScale}, {"outcome_code", int64_t(result.outcome)},
      {"outcome", step.describe()},   {"values", std::move(values)},
      {"reported", std::move(named)}, {"missing", std::move(missing)},
      {"message", result.message}};
}

json::Object Report::toJson() const {
  json::Object roles;
  for (auto &[role, difference] : differences)
    roles[role] = ::toJson(difference);
  // Where nothing ran, what went wrong stands for the first difference.
  std::string first = firstOutside;
  if (first.empty())
    first = errors.getFirstMessage().str();
  json::Array stepObjects;
  for (const StepReport &step : steps)
    stepObjects.push_back(::toJson(step, valueNames));
  json::Array byRank;
  for (const zero_rt_counters &counted : counters)
    byRank.push_back(::toJson(counted));
  return json::Object{
      {"engine", engine},
      {"against", against.empty() ? json::Value(nullptr) : against},
      {"ranks", ranks},
      {"orders", orders},
      {"elements", elements},
      {"compared_elements", against.empty() ? 0 : comparedElements},
      {"equal", isEqual()},
      {"first_outside", first},
      {"roles", std::move(roles)},
      {"reported", ::toJson(reported)},
      {"applied", count(OutcomeKind::applied)},
      {"skipped", count(OutcomeKind::skipped)},
      {"refused", count(OutcomeKind::refused)},
      {"steps", std::move(stepObjects)},
      {"counters", std::move(byRank)},
      {"state_hash", stateHash.empty() ? json::Value(nullptr) : stateHash}};
}
