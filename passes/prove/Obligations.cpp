//===- Obligations.cpp - What every step must do --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Outcome.h"
#include "passes/prove/Example.h"
#include "passes/prove/SignOfInfinity.h"

#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Whether the step is applied where ranks made different numbers of backward
/// passes.
static bool appliesUnequal(const StepSemantics &semantics) {
  for (int i = 0; i < kNumSituations; ++i)
    if (getSituation(i).unequal && mayHappen(getSituation(i), semantics) &&
        semantics.outcomes[i] == 0)
      return true;
  return false;
}

/// Reports a number that differs between ranks, or that was never written.
static bool checkNumber(Proof &proof, Operation *op, const llvm::Twine &what,
                        Expr number, const StepSemantics &semantics) {
  std::string unknown = describeUnknown(number);
  if (unknown.empty() && number->hasOwnCount() && appliesUnequal(semantics))
    unknown =
        "the number of this rank's backward passes, and the step is applied "
        "where others made another number of them";
  if (!unknown.empty()) {
    InFlightDiagnostic diagnostic = proof.report.error(op);
    diagnostic << what << " depends on " << unknown;
    Report::attach(
        diagnostic, op->getLoc(),
        findDependence(proof.algebra, number, semantics.getNumRanks()));
    return false;
  }
  return true;
}

static void checkParameter(Proof &proof, const ParameterSemantics &parameter,
                           const StepSemantics &semantics) {
  ParameterOp op = parameter.op;
  if (parameter.elements == 0)
    return;
  std::string name = op.getSymName().str();
  Operation *writer = parameter.writer ? parameter.writer : semantics.step;
  int64_t next = 0;
  for (const IntervalSemantics &interval : parameter.intervals) {
    if (interval.begin != next)
      break;
    next = interval.end;
    for (auto &[role, number] : interval.roles)
      if (!checkNumber(proof, writer,
                       "new " + llvm::Twine(role) + " of '" + name + "'",
                       number.expr, semantics))
        return;
    const Number *master = interval.find("master");
    const Number *value = interval.find("parameter");
    if (!value) {
      proof.report.error(semantics.step)
          << "'" << name << "' is no state of the step: no checkpoint saves it";
      return;
    }
    if (!parameter.summedReduceDtype.holds(value->reduceDtype)) {
      proof.report.error(writer)
          << "'" << name
          << "' is summed over, as for a norm, as it travelled in "
          << parameter.summedReduceDtype.describe()
          << ", and updated with more than that";
      return;
    }
    if (master && value->expr != master->expr) {
      InFlightDiagnostic diagnostic = proof.report.error(writer);
      if (!parameter.writer) {
        diagnostic << "'" << name
                   << "' is not updated, though its gradients arrive";
        return;
      }
      diagnostic << "'" << name
                 << "' and its master weights become different numbers: "
                 << toString(value->expr, master->expr) << " and "
                 << toString(master->expr, value->expr);
      Report::attach(diagnostic, writer->getLoc(),
                     findExample(proof.algebra, value->expr, master->expr,
                                 semantics.getNumRanks()));
      return;
    }
  }
  if (next == parameter.elements)
    return;
  InFlightDiagnostic diagnostic = proof.report.error(writer);
  if (next == 0 && parameter.intervals.empty())
    diagnostic << "'" << name
               << "' is not updated, though its gradients arrive";
  else
    diagnostic << "'" << name << "' is not updated from element " << next
               << " on, a rank holds " << parameter.elements;
}

void prove::checkResults(Proof &proof, const StepSemantics &semantics) {
  for (auto &[name, number] : semantics.results)
    checkNumber(proof, semantics.step, "result '" + llvm::Twine(name) + "'",
                number.expr, semantics);
}

void prove::checkSemantics(Proof &proof, const StepSemantics &semantics) {
  // A norm that ranks do not agree on makes updates on which they do not agree.
  checkResults(proof, semantics);
  for (auto &[name, parameter] : semantics.parameters)
    checkParameter(proof, parameter, semantics);
  llvm::StringSet<> counters;
  for (auto &[name, number] : semantics.counters) {
    if (!counters.insert(name).second)
      proof.report.error(semantics.step)
          << "counter '" << name << "' is advanced twice";
    checkNumber(proof, semantics.step, "counter '" + llvm::Twine(name) + "'",
                number.expr, semantics);
  }
  auto report = [&](Situation situation, double outcome) {
    InFlightDiagnostic diagnostic = proof.report.error(semantics.step);
    Report::attach(diagnostic, semantics.step->getLoc(),
                   describeExample(situation, outcome));
    return diagnostic;
  };
  for (int i = 0; i < kNumSituations; ++i) {
    Situation situation = getSituation(i);
    if (!mayHappen(situation, semantics))
      continue;
    std::optional<Outcome> outcome = toOutcome(semantics.outcomes[i]);
    if (!outcome)
      report(situation, semantics.outcomes[i])
          << "where " << describe(situation) << ", the outcome is "
          << describeOutcome(semantics.outcomes[i])
          << ", expected a whole number from 0 to " << int(kLastOutcome);
    bool mayApply = !situation.missing && !situation.noTokens &&
                    (!situation.unequal || semantics.takesUnequal);
    if ((outcome == Outcome::applied) > mayApply)
      report(situation, semantics.outcomes[i])
          << "the step is applied where " << describe(situation);
  }
  if (semantics.outcomes[0] != 0)
    proof.report.error(semantics.step)
        << "the step is not applied where " << describe(getSituation(0));
  // Where numbers over the reals are wrong, that is what to mend first.
  if (semantics.rounding && !proof.report.hasErrors())
    proof.report.error(semantics.rounding)
        << "whether the step is applied depends on the result of '"
        << semantics.rounding->getName().getStringRef()
        << "', which may be rounded: expected sums over elements, whole "
           "numbers of backward passes, and comparisons of them";
  if (!proof.report.hasErrors())
    checkQuotients(proof, semantics);
}
