//===- Sample.cpp - Text that a trained model writes ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Model.h"
#include "examples/transformer/Trainer.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace transformer {

std::string generate(const Options &options, const Text &text,
                     const std::vector<std::vector<float>> &parameters,
                     int64_t count) {
  Model<float> model(options.shape, /*batch=*/1);
  std::vector<const float *> views;
  for (const std::vector<float> &parameter : parameters)
    views.push_back(parameter.data());
  model.setParameters(views);

  std::mt19937_64 generator(uint64_t(options.seed));
  int64_t context = options.shape.context;
  std::vector<int32_t> inputs, targets;
  text.sample(uint64_t(options.seed), 0, 1, context, inputs, targets);
  // Begin with one real character; nothing looks at what is right of it.
  std::string written(1, text.character(inputs[0]));
  std::fill(inputs.begin() + 1, inputs.end(), 0);
  int64_t known = 1;
  while (int64_t(written.size()) < count) {
    model.forward(inputs.data(), targets.data());
    const float *p =
        model.probabilities() + (known - 1) * options.shape.vocabulary;
    // A little below the model's own temperature reads better.
    std::vector<double> weights;
    for (int64_t i = 0; i < options.shape.vocabulary; ++i)
      weights.push_back(std::pow(double(p[i]), 1.25));
    int32_t next = std::discrete_distribution<int32_t>(
        weights.begin(), weights.end())(generator);
    if (known == context)
      std::rotate(inputs.begin(), inputs.begin() + 1, inputs.end());
    else
      ++known;
    inputs[known - 1] = next;
    written += text.character(next);
  }
  return written;
}

} // namespace transformer
