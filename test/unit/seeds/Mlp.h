//===- Mlp.h - A small model with real gradients ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_SEEDS_MLP_H
#define ZERO_TEST_UNIT_SEEDS_MLP_H

#include "Steps.h"

namespace zero::test {

/// The model of the reports: linear layers with GELU between them, and the mean
/// squared error. Layer i has the parameters fc<i>.weight and fc<i>.bias.
class Mlp {
public:
  /// Features of the input, of every hidden layer, and of the output.
  explicit Mlp(std::vector<int64_t> widths) : widths(std::move(widths)) {}

  std::vector<ParameterText> listParameters() const;
  /// Of every parameter, exact in f32.
  Backward getInitial() const;
  /// The gradients, rounded to bf16, of a batch of four drawn from |seed|.
  Backward getGradients(const Backward &values, uint64_t seed) const;
  /// getGradients for every backward pass of every rank of |step|, each with a
  /// batch of its own.
  Window getWindow(const Backward &values, int64_t step, int64_t ranks,
                   int64_t backwards) const;

private:
  std::vector<int64_t> widths;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_SEEDS_MLP_H
