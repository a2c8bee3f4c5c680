//===- PlacedStep.h - Steps whose parameters live here and there *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_SEEDS_PLACEDSTEP_H
#define ZERO_TEST_UNIT_SEEDS_PLACEDSTEP_H

#include "Steps.h"

namespace zero::test {

using Values = std::vector<double>;

struct Placed {
  std::string name;
  std::string type;    // "2xf32, sharded = [ep]"
  std::string arrival; // "partial = [edp, micro], reduced = [ep]"
};

/// SGD on |mesh|, with a norm over all and no clipping. |weight| is divided out
/// by the step.
std::string printStep(const std::string &mesh, const std::string &weight,
                      const std::string &replicated,
                      const std::vector<Placed> &parameters);

class PlacedStepTest : public testing::TestWithParam<Way> {
protected:
  /// One step with rate 1 from zeros; |gradients|[r] is what rank r delivers.
  void run(const std::string &source, const std::vector<Backward> &gradients);
  /// One more.
  StepResult apply(const std::vector<Backward> &gradients);
  /// What is said where one more is refused.
  std::string refused(const std::vector<Backward> &gradients);
  /// What was subtracted from |name| on |rank|.
  Values applied(int64_t rank, const std::string &name);

  std::unique_ptr<Step> step;
  double norm = 0;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_SEEDS_PLACEDSTEP_H
