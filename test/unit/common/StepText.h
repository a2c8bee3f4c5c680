//===- StepText.h - Logical steps as text -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_COMMON_STEPTEXT_H
#define ZERO_TEST_UNIT_COMMON_STEPTEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace zero::test {

/// The text of examples/optimizers/|name|.mlir.
std::string getOptimizer(const std::string &name);
/// The text of examples/loss_scales/|name|.mlir.
std::string getLossScale(const std::string &name);
/// The text of examples/schedules/|name|.mlir.
std::string getSchedule(const std::string &name);
/// |text| with other words in place of its own, each of which it must have.
std::string
replaceWords(std::string text,
             const std::vector<std::pair<std::string, std::string>> &words);

struct ParameterText {
  std::string name;
  int64_t elements = 1;
  std::string flags; // e.g. "optional"
};

/// A step @s over the axis dp that sums, reduces, takes the norm and updates
/// all parameters; its result is the norm, its arguments the learning rate and,
/// where the normalize names them, the tokens of each rank.
struct StepText {
  int64_t ranks = 2;
  std::vector<ParameterText> parameters = {{"w", 1, ""}};
  /// @sgd without momentum, whose state momentum_buffer is then the gradient
  /// that the update saw; or @adam, or @adamw, without decay.
  std::string optimizer = "sgd";
  std::string storage = "f32";
  std::string arrival = "bf16";
  std::string accumulator = "f32";
  std::string wire; // empty: addends travel as they are accumulated
  /// Monomials of a contribution's weight and of what it arrives with.
  std::string weight = "dp : -1";
  std::string arrives;
  std::string nonfinite; // e.g. "nonfinite apply"
  /// The text of a zero.loss_scale that gradients arrive with; empty: none.
  std::string lossScale;
  /// The text of a zero.schedule @lr, which the step reports besides the norm;
  /// empty: the rate is an argument.
  std::string schedule;
  double maxNorm = 0; // 0: no clipping

  std::string print() const;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_COMMON_STEPTEXT_H
