//===- Facts.cpp - What is known of the variables of an applied step ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Facts.h"

#include "passes/prove/Counts.h"
#include "passes/prove/RealNumbers.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace zero;
using namespace zero::prove;

/// Whether |a| is the square of a gradient that all ranks have summed.
static bool isSquare(Expr a) {
  llvm::ArrayRef<Term> terms = a->getTerms();
  if (terms.size() != 1 || terms[0].monomial.size() != 1 ||
      terms[0].coefficient.numerator <= 0)
    return false;
  auto [base, exponent] = terms[0].monomial[0];
  return base->kind == BaseKind::gradient && base->epoch == Epoch::all &&
         base->over == 0 && exponent == 2;
}

std::optional<Bounds> Facts::find(BaseRef base) const {
  if (isNeverZero(base) && base->kind != BaseKind::constant)
    return Bounds::ofPositive(); // a count, a loss scale or the max of a clip
  switch (base->kind) {
  case BaseKind::constant:
    if (std::isfinite(base->value))
      return Bounds::ofNumber(base->value);
    return std::nullopt;
  case BaseKind::old: {
    auto it = counters.find(base->name);
    return it == counters.end() ? Bounds::ofAll() : it->second;
  }
  case BaseKind::state: {
    if (!isFinite)
      return std::nullopt;
    auto it = states.find(base->name);
    return it == states.end() ? Bounds::ofAll() : it->second;
  }
  case BaseKind::gradient:
    if (isFinite && base->epoch == Epoch::all && base->over == 0)
      return Bounds::ofAll();
    return std::nullopt;
  case BaseKind::sumOver:
    // The outcome looks at this sum, or at its addends.
    if (isFinite && base->own == 0 && base->bits == 0 &&
        isSquare(base->operands[0]))
      return Bounds::ofAllFrom0();
    return std::nullopt;
  case BaseKind::delivered:
    return Bounds::ofAllFrom0();
  case BaseKind::rankSum:
    if (isCount(base))
      return isSumOfMissing(base) ? Bounds::ofAll() : Bounds::ofAllFrom0();
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

void Facts::describe(Expr a, std::set<std::string> &words) const {
  visitBases(a, [&](BaseRef base) {
    bool isState = base->kind == BaseKind::state;
    if (!isState && base->kind != BaseKind::old)
      return;
    auto bounds = find(base);
    if (!bounds || (std::isinf(bounds->least) && std::isinf(bounds->most)))
      return;
    std::string text;
    llvm::raw_string_ostream os(text);
    os << (isState ? "state '" : "counter '") << base->name << "' is ";
    if (bounds->least == 0 && std::isinf(bounds->most))
      os << "not negative";
    else if (std::isinf(bounds->least))
      os << llvm::format("at most %g", bounds->most);
    else if (std::isinf(bounds->most))
      os << llvm::format("at least %g", bounds->least);
    else
      os << llvm::format("from %g to %g", bounds->least, bounds->most);
    words.insert(text);
  });
}

static bool refusesNonfinite(const StepSemantics &semantics) {
  for (int i = 0; i < kNumSituations; ++i)
    if (getSituation(i).nonfinite && mayHappen(getSituation(i), semantics) &&
        semantics.outcomes[i] == 0)
      return false;
  return true;
}

/// |old| and |now|, with ends that cannot move for ever.
static Bounds grow(Bounds old, Bounds now) {
  Bounds both = unite(old, now);
  // What grows or shrinks with each step becomes 0 or infinite in the end.
  if (both.least < old.least)
    both.least = both.least >= 0 ? 0 : -kInfinity;
  if (both.most > old.most)
    both.most = both.most <= 1 ? 1 : kInfinity;
  both.notZero = false;
  return both;
}

Facts prove::findFacts(Algebra &algebra, const StepSemantics &first,
                       const StepSemantics &second) {
  Facts facts;
  facts.isFinite = refusesNonfinite(first) && refusesNonfinite(second);
  for (auto &[name, number] : first.initials)
    facts.counters[name] = RealNumbers(algebra, {}).getBounds(number.expr);
  // What is assumed must hold for the step that the assumption leads to.
  for (bool isStable = false; !isStable;) {
    isStable = true;
    RealNumbers numbers(algebra, facts);
    for (auto *next : {&first.counters, &first.skipped})
      for (auto &[name, number] : *next) {
        Bounds &old =
            facts.counters.try_emplace(name, Bounds::ofAll()).first->second;
        Bounds now = numbers.getBounds(number.expr);
        bool isKept = old.holds(now) && (now.isNotZero() || !old.notZero);
        if (isKept)
          continue;
        old = grow(old, now);
        isStable = false;
      }
  }
  return facts;
}

Facts prove::addFactsOfState(Algebra &algebra, Facts facts,
                             const ParameterSemantics &parameter) {
  // State begins as 0, but for parameters and master weights. All of it may be
  // not negative; what is wrong is left out until the rest is kept.
  for (const IntervalSemantics &interval : parameter.intervals)
    for (auto &[role, number] : interval.roles)
      if (role != "parameter" && role != "master")
        facts.states[role] = Bounds::ofAllFrom0();
  for (bool isStable = false; !isStable;) {
    isStable = true;
    RealNumbers numbers(algebra, facts);
    for (const IntervalSemantics &interval : parameter.intervals)
      for (auto &[role, number] : interval.roles)
        if (facts.states.contains(role) &&
            !numbers.getBounds(number.expr).isNotNegative()) {
          facts.states.erase(role);
          isStable = false;
        }
  }
  return facts;
}
