//===- Equality.h - Do two steps compute equal numbers? ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_EQUALITY_H
#define ZERO_PASSES_PROVE_EQUALITY_H

#include "passes/prove/RealNumbers.h"

namespace zero::prove {

/// Finds the facts of two steps if their numbers are not the same objects.
class Equality {
public:
  Equality(Proof &proof, const StepSemantics &first,
           const StepSemantics &second)
      : proof(proof), first(first), second(second) {}

  /// Whether |a| equals |b| in each applied step. |parameter| has the state
  /// that they are made of, if they are numbers of elements.
  bool areEqual(Expr a, Expr b, const ParameterSemantics *parameter);
  /// Whether |a| equals |b| in each step that is not applied. Its gradients may
  /// not be finite, and the number of tokens of a refused step is any number.
  /// So of the facts only those of counters hold.
  bool areEqualIfNotApplied(Expr a, Expr b);
  /// If |a|, which equals |b|, loses digits that |b| does not lose: how.
  std::optional<Beyond> findLost(Expr a, Expr b,
                                 const ParameterSemantics *parameter);

private:
  RealNumbers &getNumbers(const ParameterSemantics *parameter);

  Proof &proof;
  const StepSemantics &first;
  const StepSemantics &second;
  std::optional<Facts> facts;
  std::unique_ptr<RealNumbers> withoutState;
  std::unique_ptr<RealNumbers> withoutFacts, withCounters;
  std::optional<Substitution> takeOut; // see takeOutOfRoots()
  std::optional<Substitution> folding; // see foldConstants()
  /// By the new state of a parameter: all parameters of a group have the same.
  std::map<std::vector<std::pair<std::string, Expr>>,
           std::unique_ptr<RealNumbers>>
      numbers;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_EQUALITY_H
