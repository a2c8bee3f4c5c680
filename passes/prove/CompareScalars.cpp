//===- CompareScalars.cpp - Counters and results of two steps -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/AbsentGroups.h"
#include "passes/prove/Comparison.h"
#include "passes/prove/Example.h"
#include "passes/prove/RelativeError.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

std::optional<Beyond> Comparison::findGrowthOrLoss(const Number &number,
                                                   const Number &expected,
                                                   ScalarKind kind) {
  if (auto beyond =
          findGrowth(number, expected, getScalarType(expected.expr, first)))
    return beyond;
  if (auto beyond = kind == ScalarKind::counter
                        ? findGrowthOfCounter(number, expected)
                        : std::nullopt)
    return beyond;
  return equality.findLost(number.expr, expected.expr, /*parameter=*/nullptr);
}

void Comparison::compareScalars(StringRef when, ScalarKind kind,
                                ArrayRef<std::pair<std::string, Number>> a,
                                ArrayRef<std::pair<std::string, Number>> b,
                                bool isApplied) {
  std::string scalar =
      (when + (kind == ScalarKind::counter ? "counter" : "result")).str();
  llvm::StringMap<const Number *> expectedByName, byName;
  for (auto &[name, number] : a)
    expectedByName.try_emplace(name, &number);
  for (auto &[name, number] : b)
    byName.try_emplace(name, &number);
  for (auto &[name, expected] : a) {
    const Number *number = byName.lookup(name);
    if (!number)
      error(second.step) << scalar << " '" << name << "' is missing";
    else if (isApplied ? !areEqual(number->expr, expected.expr)
                       : !equality.areEqualIfNotApplied(number->expr,
                                                        expected.expr)) {
      InFlightDiagnostic diagnostic = error(second.step);
      diagnostic << scalar << " '" << name << "'";
      describeDifference(diagnostic, second.step, number->expr, expected.expr);
    } else if (auto narrowing =
                   number->roundings.findNarrower(expected.roundings)) {
      InFlightDiagnostic diagnostic = error(second.step);
      diagnostic << scalar << " '" << name
                 << "': " << narrowing->source.describe() << " went through "
                 << narrowing->actual.describe() << ", expected "
                 << narrowing->expected.describe();
      Report::attach(diagnostic, second.step->getLoc(),
                     findRounding(narrowing->actual, narrowing->expected));
    } else if (auto beyond = number->roundings.findBeyond(expected.roundings)) {
      InFlightDiagnostic diagnostic = error(second.step);
      diagnostic << scalar << " '" << name << "': " << beyond->text;
      Report::attach(diagnostic, second.step->getLoc(), beyond->example);
    } else if (auto beyond = findGrowthOrLoss(*number, expected, kind)) {
      InFlightDiagnostic diagnostic = error(second.step);
      diagnostic << scalar << " '" << name << "': " << beyond->text;
      Report::attach(diagnostic, second.step->getLoc(), beyond->example);
    } else if (std::string foreign =
                   number->roundings.findForeignInput(expected.roundings);
               !foreign.empty()) {
      error(second.step) << scalar << " '" << name << "' " << foreign;
    }
  }
  for (auto &[name, number] : b)
    if (!expectedByName.contains(name))
      error(second.step) << scalar << " '" << name
                         << "' is none of the other step";
}

/// The inputs from which state is computed, also those that make no difference
/// over the reals. The step is refused where one of them is nan.
static std::set<std::string> getHyperInputs(const StepSemantics &semantics) {
  std::set<std::string> inputs;
  llvm::DenseSet<const void *> seen;
  auto add = [&](const Number &number) {
    if (seen.insert(number.roundings.getKey()).second)
      number.roundings.addNames(SourceKind::input, inputs);
  };
  for (auto &[name, parameter] : semantics.parameters)
    for (const IntervalSemantics &interval : parameter.intervals)
      for (auto &[role, number] : interval.roles)
        add(number);
  for (auto &[name, number] : semantics.counters)
    add(number);
  return inputs;
}

/// Counters of a group with `absent skip` stay as they are without its
/// gradients, and those of no other group. Those that always stay ask for none.
void Comparison::compareSkippedCounters() {
  auto find = [](const StepSemantics &semantics, const std::string &role) {
    auto it = semantics.countersSkippedWith.find(role);
    return it == semantics.countersSkippedWith.end() ? SkippedWith()
                                                     : it->second;
  };
  for (auto &[role, number] : first.counters) {
    SkippedWith expected = find(first, role), members = find(second, role);
    if (areSame(expected, members) ||
        number.expr == proof.algebra.base({BaseKind::old, role}))
      continue;
    auto whereAbsent = [](const SkippedWith &group) {
      return group ? " where no gradient of " + *group + " arrived"
                   : " where gradients are absent";
    };
    error(second.step) << "counter '" << role << "' "
                       << (members ? "stays" : "changes")
                       << whereAbsent(members) << ", expected to "
                       << (expected ? "stay" : "change")
                       << whereAbsent(expected);
  }
}

void Comparison::compareHyperInputs() {
  std::set<std::string> expected = getHyperInputs(first);
  for (const std::string &input : getHyperInputs(second))
    if (expected.count(input) == 0)
      error(second.step) << "new state is computed from " << input
                         << ", expected otherwise: the step would be refused "
                            "where this is not finite";
}

/// Reports counters that one step alone has.
bool Comparison::haveSameCounters() {
  unsigned errors = proof.report.getNumErrors();
  llvm::StringSet<> expected, actual;
  for (auto &[name, number] : first.counters)
    expected.insert(name);
  for (auto &[name, number] : second.counters)
    actual.insert(name);
  for (auto &[name, number] : first.counters)
    if (!actual.contains(name))
      error(second.step) << "counter '" << name << "' is missing";
  for (auto &[name, number] : second.counters)
    if (!expected.contains(name))
      error(second.step) << "the other step has no counter '" << name << "'";
  return proof.report.getNumErrors() == errors;
}
