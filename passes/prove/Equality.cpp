//===- Equality.cpp - Do two steps compute equal numbers? -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Equality.h"

#include "passes/prove/FoldedConstants.h"
#include "passes/prove/Roots.h"

using namespace zero;
using namespace zero::prove;

RealNumbers &Equality::getNumbers(const ParameterSemantics *parameter) {
  if (!facts)
    facts = findFacts(proof.algebra, first, second);
  std::vector<std::pair<std::string, Expr>> key;
  if (parameter)
    for (const IntervalSemantics &interval : parameter->intervals)
      for (auto &[role, number] : interval.roles)
        key.push_back({role, number.expr});
  auto &found = numbers[key];
  if (!found)
    found = std::make_unique<RealNumbers>(
        proof.algebra, parameter
                           ? addFactsOfState(proof.algebra, *facts, *parameter)
                           : *facts);
  return *found;
}

bool Equality::areEqual(Expr a, Expr b, const ParameterSemantics *parameter) {
  if (a == b)
    return true;
  RealNumbers &known = getNumbers(parameter);
  // Facts of state are a precondition, so only where there is no other way.
  if (!withoutState)
    withoutState =
        std::make_unique<RealNumbers>(proof.algebra, Facts{facts->isFinite});
  if (withoutState->areEqual(a, b))
    return true;
  if (!known.areEqual(a, b)) {
    if (!folding)
      folding.emplace(foldConstants(proof.algebra));
    if (!known.areEqual(folding->apply(a), folding->apply(b)))
      return false;
  }
  known.getFacts().describe(a, proof.assumed);
  return true;
}

std::optional<Beyond> Equality::findLost(Expr a, Expr b,
                                         const ParameterSemantics *parameter) {
  if (a == b)
    return std::nullopt;
  RealNumbers &known = getNumbers(parameter);
  // Another form of a number may lose some more.
  constexpr double kMargin = 4;
  double bits = known.getLostBits(a), expected = known.getLostBits(b);
  if (bits <= expected + kMargin)
    return std::nullopt;
  return Beyond{"a term is added that is taken away again, so digits are lost",
                showLost(static_cast<int>(bits), static_cast<int>(expected))};
}

bool Equality::areEqualIfNotApplied(Expr a, Expr b) {
  if (a == b)
    return true;
  if (!takeOut)
    takeOut.emplace(takeOutOfRoots(proof.algebra));
  a = takeOut->apply(a);
  b = takeOut->apply(b);
  if (a == b)
    return true;
  if (!withoutFacts) {
    if (!facts)
      facts = findFacts(proof.algebra, first, second);
    Facts ofCounters = *facts;
    ofCounters.isFinite = false;
    withoutFacts = std::make_unique<RealNumbers>(proof.algebra, Facts());
    withCounters =
        std::make_unique<RealNumbers>(proof.algebra, std::move(ofCounters));
  }
  if (withoutFacts->areEqual(a, b))
    return true;
  if (!withCounters->areEqual(a, b))
    return false;
  withCounters->getFacts().describe(a, proof.assumed);
  return true;
}
