//===- Judge.h - What a step does, by running it ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_MUTANTS_ENGINE_JUDGE_H
#define ZERO_TEST_MUTANTS_ENGINE_JUDGE_H

#include "tools/zero-run/Engine.h"

namespace zero::test {

/// Everything that can be seen of some steps in a row: parameters on each rank,
/// state, counters, results and outcomes, in one order.
struct Behaviour {
  bool failed = false; // to run at all
  std::vector<double> numbers;
  /// By number: which parameter, state, counter or result it is of.
  std::vector<unsigned> series;
};

/// What to look at, as the unharmed step has it.
struct Subject {
  std::vector<ParameterInfo> parameters;
  std::vector<std::string> states;
  std::vector<std::string> counters;
  std::vector<InputInfo> inputs;
  int64_t ranks = 1;
  bool oneBackward = false; // a second one is refused
  bool poison = false;      // a nan would be all that is left to see
};
/// Reads a logical step.
Subject getSubject(mlir::ModuleOp logical);

enum class Script {
  /// Steps of 1 to 4 backward passes, with gradients that are absent, missing
  /// and not finite, and with unequal numbers of backward passes, which apply
  /// or accumulate closes, and some that are given up.
  many,
  /// Steps of one backward pass. No sum of gradients is rounded before they are
  /// reduced.
  few,
  /// Steps whose gradients are near 2^100, beside others.
  large,
};

/// Runs the steps of |script|; |seed| draws gradients.
Behaviour run(mlir::ModuleOp module, const Subject &subject, Script script,
              Arithmetic arithmetic, unsigned seed);

/// Runs a long walk of short steps, in which each path of a step follows each
/// other, in the |order| of streams, which is 0 for program order. |walk| draws
/// numbers, and the gradients that are lost.
Behaviour runWalk(mlir::ModuleOp module, const Subject &subject, unsigned walk,
                  uint64_t order);

/// What a caller and a checkpoint see of the step in |module|: parameters,
/// types, states.
std::string getInterface(mlir::ModuleOp module);

/// The largest relative difference of two behaviours; infinite if one of them
/// failed, or decided otherwise.
double getDistance(const Behaviour &a, const Behaviour &b);

/// By series, the largest difference of two behaviours that do not differ
/// otherwise, relative to the largest number of the series.
std::vector<double> getErrors(const Behaviour &exact, const Behaviour &rounded);

} // namespace zero::test

#endif // ZERO_TEST_MUTANTS_ENGINE_JUDGE_H
