//===- Inputs.h - Initial values and gradients of a run ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_INPUTS_H
#define ZERO_TOOLS_ZERO_RUN_INPUTS_H

#include "tools/zero-run/Engine.h"

namespace zero {

enum class GradientKind {
  /// Normal numbers, rounded to the arrival type.
  random,
  /// Small integers, one list of 336 per element dealt out over ranks and
  /// backward passes: every partial sum is exact, so results do not depend on
  /// the
  /// order, the stage, or on how ranks and backward passes share the work.
  exact
};

/// What callers say where a backward pass begins, the same on all ranks.
enum class Hints {
  unknown, // nothing
  last,    // of the last backward pass of a step that it is
  random   // of any backward pass that it is the last
};

/// Makes every number of a run from one seed, the same whatever runs it.
class Inputs {
public:
  Inputs(uint64_t seed, GradientKind kind) : seed(seed), kind(kind) {}

  /// Initial values of parameter |index|, exact in bf16.
  std::vector<double> getInitial(size_t index, const ParameterInfo &info) const;

  /// The gradient of parameter |index| from |rank| in backward pass |backward|
  /// of |backwards| in step |step|.
  std::vector<double> getGradient(size_t index, const ParameterInfo &info,
                                  int64_t step, int64_t rank, int64_t ranks,
                                  int64_t backward, int64_t backwards) const;

  /// Share |share| of |shares| of the sum that is input |index| in step |step|:
  /// a whole number, not negative. The sum is positive, and the same for any
  /// number of shares.
  double getShare(size_t index, int64_t step, int64_t share,
                  int64_t shares) const;

  /// Whether backward pass |backward| of step |step| is begun as the last, in a
  /// run in which callers say so at random.
  bool isBegunAsLast(int64_t step, int64_t backward) const;

  /// Whether the gradient of an optional parameter is left out, in a run in
  /// which some are. In some steps it arrives nowhere.
  bool isAbsent(size_t index, int64_t step, int64_t rank,
                int64_t backward) const;

private:
  uint64_t seed;
  GradientKind kind;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_INPUTS_H
