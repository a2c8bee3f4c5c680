//===- Reference.h - AdamW in f64, beside the compiled step -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_REFERENCE_H
#define ZERO_EXAMPLES_TRANSFORMER_REFERENCE_H

#include "examples/transformer/Parameters.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace transformer {

/// What the step's text says, as constants of this loop.
struct AdamWConstants {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.1;
  double maxNorm = 1.0;
};

/// The training loop that one would write by hand, with its own parameters and
/// moments, all in f64. It shares nothing with the compiled step but the
/// rounded gradients: it stays close only because both see the same ones. It
/// cannot replace the step, whose parameters make these gradients.
class Reference {
public:
  Reference(std::vector<Parameter> parameters,
            const std::vector<std::vector<float>> &initial, int copies);

  /// Adds what a rank of data-parallel copy |copy| handed to the step, which is
  /// the gradient times |scale|. Ranks may do so at the same time.
  void addGradient(int64_t copy, int32_t parameter,
                   const std::vector<float> &gradient, double scale);

  /// Forgets the sums of a step that is skipped.
  void drop();

  /// One step with the mean over copies of the sums since the last one, which
  /// are forgotten. No rank may add meanwhile. Returns the norm before the
  /// clip.
  double update(double learningRate);

  /// Elements of a parameter from |begin| on, as a checkpoint has them. |role|:
  /// "parameter", "master", "m" or "v". Ranks may do so at the same time.
  void restore(int32_t parameter, const std::string &role, int64_t begin,
               const std::vector<float> &values);
  /// A counter, such as "decay.beta1_t"; all groups have the same.
  void restoreCounter(const std::string &role, double value);
  /// The steps that were made before. All ranks call it with the same number.
  void setSteps(int64_t number);

  /// max |p - p_ref| over all elements, given the step's parameters.
  double difference(const std::vector<const float *> &actual) const;

  /// What rounding alone may have made of the difference until now.
  double tolerance() const { return bound; }

  const std::vector<double> &values(int32_t parameter) const {
    return state[parameter].value;
  }

private:
  struct State {
    std::vector<double> value, first, second;
  };

  AdamWConstants constants;
  std::vector<Parameter> parameters;
  std::vector<State> state;
  std::vector<std::vector<std::vector<double>>> sums; // by copy, parameter
  double beta1Power = 1.0, beta2Power = 1.0;
  int64_t steps = 0;
  double bound = 0.0;
  std::mutex restoring; // several ranks may hold the same elements
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_REFERENCE_H
