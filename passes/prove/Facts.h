//===- Facts.h - What is known of the variables of an applied step -*- C++ -*-//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fact is true in each applied step. That of state and counters is shown by
// induction: it is true before the first step, and a step keeps it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_FACTS_H
#define ZERO_PASSES_PROVE_FACTS_H

#include "passes/prove/Bounds.h"
#include "passes/prove/StepSemantics.h"

#include "llvm/ADT/StringMap.h"

namespace zero::prove {

struct Facts {
  /// Whether an applied step has finite gradients, and finite sums of their
  /// squares. The outcome decides this. State is finite then.
  bool isFinite = false;
  /// Of counters, and of the state of one parameter, by name.
  llvm::StringMap<Bounds> counters = {};
  llvm::StringMap<Bounds> states = {};

  /// The bounds of |base|; nothing where it may be nan or infinite.
  std::optional<Bounds> find(BaseRef base) const;
  /// Adds what is known of state in |a|, in words.
  void describe(Expr a, std::set<std::string> &words) const;
};

/// The facts of a step that equals both |first| and |second|.
Facts findFacts(Algebra &algebra, const StepSemantics &first,
                const StepSemantics &second);

/// |facts|, and those of the state of |parameter|, a parameter of |semantics|.
Facts addFactsOfState(Algebra &algebra, Facts facts,
                      const ParameterSemantics &parameter);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_FACTS_H
