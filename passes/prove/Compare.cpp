//===- Compare.cpp - Do two steps mean the same? --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "passes/prove/AbsentGroups.h"
#include "passes/prove/Comparison.h"
#include "passes/prove/Contract.h"
#include "passes/prove/Example.h"
#include "passes/prove/RelativeError.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <utility>

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// How much there is to read.
static size_t getSize(Expr a) {
  size_t size = a->getTerms().size();
  visitBases(a, [&](BaseRef) { ++size; });
  return size;
}

/// The part of |a| that is linear in a gradient, without all that stays the
/// same for each of them.
static Expr getGradientPart(Algebra &algebra, Expr a) {
  return algebra.mapTerms(a, [&](const Term &term) {
    bool isLinear = llvm::any_of(term.monomial, [](auto factor) {
      return factor.first->kind == BaseKind::gradient && factor.second == 1;
    });
    return isLinear ? algebra.product(term.coefficient, term.monomial)
                    : algebra.integer(0);
  });
}

/// How often the gradient in |a| counts, compared with that in |expected|.
static std::optional<Rational> getShare(Algebra &algebra, Expr a,
                                        Expr expected) {
  Expr part = getGradientPart(algebra, a);
  Expr whole = getGradientPart(algebra, expected);
  if (part->getTerms().size() != 1 || whole->getTerms().size() != 1 ||
      part == whole)
    return std::nullopt;
  const Term &x = part->getTerms()[0], &y = whole->getTerms()[0];
  if (x.monomial != y.monomial)
    return std::nullopt;
  return prove::multiply(x.coefficient,
                         {y.coefficient.denominator, y.coefficient.numerator});
}

void Comparison::describeDifference(InFlightDiagnostic &diagnostic,
                                    Operation *op, Expr a, Expr expected,
                                    StringRef reason) {
  std::string example =
      findExample(proof.algebra, a, expected, second.getNumRanks());
  diagnostic << " is " << toString(a, expected)
             << (example.empty() ? ", not shown equal to " : ", expected ")
             << toString(expected, a) << reason;
  Report::attach(diagnostic, op->getLoc(), example);
}

/// Whether |base| is a number of all elements that is made of gradients, such
/// as a norm or a clip coefficient.
static bool isOfNorm(BaseRef base) {
  return !base->isElement && (base->hasGradient || base->isUndefined);
}

/// Whether |a| and |expected| are equal but for norms.
bool Comparison::differByNorm(Expr a, Expr expected) {
  auto withoutNorms = [&](Expr number) {
    return proof.algebra.substitute(number, [&](BaseRef base) -> Expr {
      return isOfNorm(base) ? proof.algebra.state("any norm") : nullptr;
    });
  };
  return a != expected && withoutNorms(a) == withoutNorms(expected);
}

/// Reports the norm once, although all parameters may be clipped by it.
void Comparison::reportNorm() {
  unsigned errors = proof.report.getNumErrors();
  compareScalars("", ScalarKind::result, first.results, second.results);
  if (proof.report.getNumErrors() > errors)
    return;
  // The step reports no norm.
  auto find = [&](Expr number, Expr other) {
    llvm::DenseSet<BaseRef> known;
    visitBases(other, [&](BaseRef base) { known.insert(base); });
    BaseRef found = nullptr;
    visitBases(
        number,
        [&](BaseRef base) {
          if (!found && isOfNorm(base) && !known.contains(base))
            found = base;
        },
        [](BaseRef base) { return !isOfNorm(base); });
    return found ? proof.algebra.product({1, 1}, {{found, 1}}) : number;
  };
  auto [writer, name, actual, expected] = *clipped;
  InFlightDiagnostic diagnostic = error(writer);
  diagnostic << "what multiplies the gradient of '" << name << "'";
  describeDifference(diagnostic, writer ? writer : second.step,
                     find(actual, expected), find(expected, actual));
}

/// Whether |a| contains the loss scale of the next step.
bool Comparison::dependsOnNextScale(Expr a) {
  bool depends = false;
  for (auto &[name, number] : second.counters)
    if (!second.lossScale.empty() &&
        StringRef(name).starts_with(second.lossScale + "."))
      if (BaseRef next = number.expr->asBase();
          next && next->kind == BaseKind::operation)
        visitBases(a, [&](BaseRef base) { depends |= base == next; });
  return depends;
}

void Comparison::compareElements(const ParameterSemantics &a,
                                 const ParameterSemantics &b,
                                 const IntervalSemantics &x,
                                 const IntervalSemantics &y, int64_t element) {
  ParameterOp op = b.op;
  // A mistake shows in all roles. The shortest expression explains it best.
  const Number *shown = nullptr;
  const Number *shownExpected = nullptr;
  std::optional<Narrowing> shownNarrowing;
  std::optional<Beyond> shownBeyond;
  std::string shownRole;
  size_t length = 0;
  for (auto &[role, expected] : x.roles) {
    const Number *number = y.find(role);
    if (!number) {
      error(b.writer) << "'" << op.getSymName() << "' has no " << role;
      continue;
    }
    bool differs = !areEqual(number->expr, expected.expr, &a);
    Type kept = a.types.lookup(StringAttr::get(op.getContext(), role));
    std::optional<Narrowing> narrowing =
        number->roundings.findNarrower(expected.roundings, role);
    std::optional<Beyond> beyond =
        number->roundings.findBeyond(expected.roundings);
    if (!beyond)
      beyond =
          findGrowth(*number, expected, kept ? Precision(kept) : Precision());
    if (!beyond && !differs)
      beyond = equality.findLost(number->expr, expected.expr, &a);
    if (!differs && !narrowing && !beyond &&
        number->reduceDtype.holds(expected.reduceDtype))
      continue;
    size_t size = getSize(number->expr) + getSize(expected.expr);
    if (shown && size >= length)
      continue;
    shown = number;
    shownExpected = &expected;
    shownNarrowing = narrowing;
    shownBeyond = beyond;
    shownRole = role;
    length = size;
  }
  bool differs = shown && !areEqual(shown->expr, shownExpected->expr, &a);
  if (differs && differByNorm(shown->expr, shownExpected->expr)) {
    if (!clipped)
      clipped = {b.writer, op.getSymName(), shown->expr, shownExpected->expr};
  } else if (differs) {
    InFlightDiagnostic diagnostic = error(b.writer);
    if (dependsOnNextScale(shown->expr)) {
      diagnostic << "element " << element << " of '" << op.getSymName()
                 << "': new " << shownRole << " depends on @"
                 << second.lossScale
                 << " as it is for the next step, expected the version that "
                    "multiplied its gradients";
      Report::attach(diagnostic, second.step->getLoc(),
                     findExample(proof.algebra, shown->expr,
                                 shownExpected->expr, second.getNumRanks()));
      return;
    }
    diagnostic << "element " << element << " of '" << op.getSymName()
               << "': new " << shownRole;
    Operation *writer = b.writer ? b.writer : second.step;
    std::string share;
    llvm::raw_string_ostream os(share);
    if (auto ratio = getShare(proof.algebra, shown->expr, shownExpected->expr))
      os << ": its gradient counts " << ratio->numerator
         << (ratio->denominator == 1 ? ""
                                     : "/" + std::to_string(ratio->denominator))
         << " times";
    describeDifference(diagnostic, writer, shown->expr, shownExpected->expr,
                       share);
    if (a.writer)
      diagnostic.attachNote(a.writer->getLoc()) << "expected by this update";
  } else if (shown && !shownNarrowing && shownBeyond) {
    InFlightDiagnostic diagnostic = error(b.writer);
    diagnostic << "element " << element << " of '" << op.getSymName()
               << "': of new " << shownRole << ", " << shownBeyond->text;
    Report::attach(diagnostic, b.writer->getLoc(), shownBeyond->example);
  } else if (shown && !shownNarrowing) {
    InFlightDiagnostic diagnostic = error(b.writer);
    diagnostic << "element " << element << " of '" << op.getSymName()
               << "': its gradient travels as " << shown->reduceDtype.describe()
               << ", expected "
               << (shownExpected->reduceDtype == Precision()
                       ? "its own type"
                       : shownExpected->reduceDtype.describe());
    Report::attach(
        diagnostic, diagnostic.getUnderlyingDiagnostic()->getLocation(),
        findRounding(shown->reduceDtype, shownExpected->reduceDtype));
  } else if (shown) {
    InFlightDiagnostic diagnostic = error(b.writer);
    diagnostic << "element " << element << " of '" << op.getSymName()
               << "': " << shownNarrowing->source.describe() << " in new "
               << shownRole << " went through "
               << shownNarrowing->actual.describe() << ", expected "
               << shownNarrowing->expected.describe();
    Report::attach(
        diagnostic, diagnostic.getUnderlyingDiagnostic()->getLocation(),
        findRounding(shownNarrowing->actual, shownNarrowing->expected));
  }
  for (auto &[role, number] : y.roles)
    if (!x.find(role))
      error(b.writer) << "'" << op.getSymName() << "' has a " << role
                      << ", which the other step has not";
}

void Comparison::compareParameter(const ParameterSemantics &a,
                                  const ParameterSemantics &b) {
  compareContract(proof, first, second, a, b);
  ParameterOp op = a.op;
  int64_t end = a.elements;
  auto x = a.intervals.begin(), y = b.intervals.begin();
  // Neighbours with one meaning are one interval to the reader of a report.
  const IntervalSemantics *lastX = nullptr, *lastY = nullptr;
  auto isSame = [](const IntervalSemantics *last,
                   const IntervalSemantics &now) {
    return last && last->roles == now.roles;
  };
  for (int64_t element = 0; element < end;) {
    while (x != a.intervals.end() && x->end <= element)
      ++x;
    while (y != b.intervals.end() && y->end <= element)
      ++y;
    if (x == a.intervals.end() || y == b.intervals.end()) {
      if ((x == a.intervals.end()) != (y == b.intervals.end()))
        error(b.writer) << "element " << element << " of '" << op.getSymName()
                        << "' is updated by one step only";
      return;
    }
    if (!isSame(lastX, *x) || !isSame(lastY, *y))
      compareElements(a, b, *x, *y, element);
    lastX = &*x;
    lastY = &*y;
    element = std::min(x->end, y->end);
  }
}

void Comparison::run() {
  if (!(first.axes == second.axes)) {
    proof.report.opError(second.step)
        << "runs on " << countOf(second.getNumRanks(), "rank") << " over "
        << second.axes.describe(second.axes.getAll()) << ", expected "
        << first.getNumRanks() << " over "
        << first.axes.describe(first.axes.getAll());
    return;
  }
  if (first.lossScale != second.lossScale)
    proof.report.opError(second.step)
        << "has "
        << (second.lossScale.empty() ? "no loss scale"
                                     : "loss scale @" + second.lossScale)
        << ", expected "
        << (first.lossScale.empty() ? "none" : "@" + first.lossScale);
  if (first.oneBackward != second.oneBackward) {
    auto describe = [](bool one) {
      return one ? "one backward pass" : "any number of backward passes";
    };
    proof.report.opError(second.step)
        << "takes " << describe(second.oneBackward) << ", expected "
        << describe(first.oneBackward);
  }
  if (first.isResumable && second.isResumable &&
      first.batches != second.batches) {
    auto describe = [&](std::optional<AxisSet> batches) {
      if (!batches)
        return std::string("are not known");
      return *batches ? "differ over " + first.axes.describe(*batches)
                      : std::string("are the same on all ranks");
    };
    proof.report.opError(second.step)
        << "has batches that " << describe(second.batches)
        << ", expected that they " << describe(first.batches)
        << ": a checkpoint within a step would go on with another number of "
           "backward passes on other ranks";
  }
  if (first.inputs.size() != second.inputs.size())
    proof.report.opError(second.step)
        << "takes " << countOf(second.inputs.size(), "scalar")
        << " at apply, expected " << first.inputs.size();
  for (size_t i = 0; i < std::min(first.inputs.size(), second.inputs.size());
       ++i) {
    const InputSemantics &a = first.inputs[i], &b = second.inputs[i];
    auto describe = [&](const InputSemantics &input) {
      std::string over = first.axes.describe(input.over);
      return std::string(input.isTokens     ? "a number of tokens"
                         : input.isPositive ? "a positive number"
                                            : "a number") +
             (over.empty() ? ", the same on all ranks"
                           : ", an addend of each rank over " + over);
    };
    if (!(a == b))
      error(second.step) << "input " << i << " of apply is " << describe(b)
                         << ", expected " << describe(a);
  }
  compareActivations(proof, first, second);
  compareLists(proof, first, second);
  // Elements that are made of a counter differ if it has another name.
  if (!haveSameCounters())
    return;
  for (auto &[name, parameter] : first.parameters) {
    auto it = second.parameters.find(name);
    if (it == second.parameters.end())
      error(second.step) << "'" << name.getValue() << "' is not updated";
    else
      compareParameter(parameter, it->second);
  }
  for (auto &[name, parameter] : second.parameters)
    if (!first.parameters.contains(name))
      error(parameter.writer)
          << "'" << name.getValue() << "' is updated by one step only";
  if (!proof.report.hasErrors())
    compareHyperInputs();
  // If nothing else differs, the norm is the cause.
  bool isOfNorm = clipped && !proof.report.hasErrors();
  if (isOfNorm)
    reportNorm();
  compareSkippedCounters();
  compareScalars("", ScalarKind::counter, first.counters, second.counters);
  compareScalars("after a skipped step, ", ScalarKind::counter, first.skipped,
                 second.skipped,
                 /*isApplied=*/false);
  compareScalars("initial value of ", ScalarKind::counter, first.initials,
                 second.initials,
                 /*isApplied=*/false);
  if (!isOfNorm)
    compareScalars("", ScalarKind::result, first.results, second.results);
  // A mistake in a result is one in each kind of step.
  if (!proof.report.hasErrors()) {
    if (maySkip(first))
      compareScalars("of a skipped step, ", ScalarKind::result,
                     first.skippedResults, second.skippedResults,
                     /*isApplied=*/false);
    compareScalars("of a refused step, ", ScalarKind::result,
                   first.refusedResults, second.refusedResults,
                   /*isApplied=*/false);
  }
  // Callers know results by their position, too.
  for (auto [a, b] : llvm::zip(first.results, second.results))
    if (a.first != b.first) {
      error(second.step) << "result '" << b.first << "' is where '" << a.first
                         << "' is expected";
      break;
    }
  if (auto beyond = second.decidedBy.findBeyond(first.decidedBy)) {
    InFlightDiagnostic diagnostic = error(second.step);
    diagnostic << "whether the step is applied: " << beyond->text;
    Report::attach(diagnostic, second.step->getLoc(), beyond->example);
  }
  std::string foreign = second.decidedBy.findForeignInput(first.decidedBy);
  if (!foreign.empty())
    error(second.step) << "whether the step is applied " << foreign;
  for (int i = 0; i < kNumSituations; ++i)
    if (mayHappen(getSituation(i), first) &&
        mayHappen(getSituation(i), second) &&
        first.outcomes[i] != second.outcomes[i]) {
      InFlightDiagnostic diagnostic = error(second.step);
      diagnostic << "where " << describe(getSituation(i)) << ", the outcome is "
                 << describeOutcome(second.outcomes[i]) << ", expected "
                 << describeOutcome(first.outcomes[i]);
      Report::attach(diagnostic, second.step->getLoc(),
                     describeExample(getSituation(i), second.outcomes[i]));
    }
}

void Comparison::compareNorms() {
  if (!(first.axes == second.axes))
    return;
  for (auto &[name, a] : first.parameters) {
    auto it = second.parameters.find(name);
    if (it == second.parameters.end() || a.intervals.empty() ||
        it->second.intervals.empty())
      continue;
    const ParameterSemantics &b = it->second;
    for (auto &[role, expected] : a.intervals.front().roles) {
      const Number *number = b.intervals.front().find(role);
      // A number that ranks gather although each has another one is not known.
      if (!number || number->expr->isUndefined() ||
          areEqual(number->expr, expected.expr, &a))
        continue;
      // Another difference may be the cause of that of the norm.
      if (!differByNorm(number->expr, expected.expr))
        return;
      if (!clipped)
        clipped = {b.writer, name.getValue(), number->expr, expected.expr};
    }
  }
  if (clipped)
    reportNorm();
}

void prove::compareNorms(Proof &proof, const StepSemantics &first,
                         const StepSemantics &second) {
  Comparison(proof, first, second).compareNorms();
}

void prove::compareSemantics(Proof &proof, const StepSemantics &first,
                             const StepSemantics &second) {
  Comparison(proof, first, second).run();
}
