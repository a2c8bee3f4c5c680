//===- Mlp.cpp - A small model with real gradients ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mlp.h"

#include "examples/transformer/Bf16.h"
#include "examples/transformer/Gelu.h"
#include "examples/transformer/Linear.h"

#include <cmath>
#include <random>

using namespace transformer;
using namespace zero::test;

static constexpr int64_t kRows = 4;

using Floats = std::vector<float>;

static std::string getName(size_t layer, const char *which) {
  return "fc" + std::to_string(layer) + "." + which;
}

static Floats draw(std::mt19937_64 &random, int64_t count, float deviation) {
  std::normal_distribution<float> normal(0, deviation);
  Floats values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

std::vector<ParameterText> Mlp::listParameters() const {
  std::vector<ParameterText> list;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    list.push_back({getName(i, "weight"), widths[i] * widths[i + 1], ""});
    list.push_back({getName(i, "bias"), widths[i + 1], ""});
  }
  return list;
}

Backward Mlp::getInitial() const {
  std::mt19937_64 random(0);
  Backward values;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    float deviation = 1 / std::sqrt(float(widths[i]));
    Floats weight = draw(random, widths[i] * widths[i + 1], deviation);
    Floats bias = draw(random, widths[i + 1], deviation);
    values[getName(i, "weight")].assign(weight.begin(), weight.end());
    values[getName(i, "bias")].assign(bias.begin(), bias.end());
  }
  return values;
}

static std::vector<double> toBf16(const Floats &values) {
  std::vector<double> rounded;
  for (float value : values)
    rounded.push_back(fromBf16(transformer::toBf16(value)));
  return rounded;
}

Backward Mlp::getGradients(const Backward &values, uint64_t seed) const {
  std::mt19937_64 random(seed);
  const size_t layers = widths.size() - 1;
  auto getShape = [&](size_t i) {
    return LinearShape{kRows, widths[i], widths[i + 1]};
  };
  auto get = [&](size_t i, const char *which) {
    const std::vector<double> &found = values.find(getName(i, which))->second;
    return Floats(found.begin(), found.end());
  };
  // What goes into each layer, and what comes out of it.
  std::vector<Floats> in{draw(random, kRows * widths[0], 1)}, out;
  for (size_t i = 0; i < layers; ++i) {
    out.emplace_back(kRows * widths[i + 1]);
    linearForward(getShape(i), in[i].data(), get(i, "weight").data(),
                  get(i, "bias").data(), out[i].data());
    in.emplace_back(out[i].size());
    geluForward(out[i].size(), out[i].data(), in[i + 1].data());
  }

  // From the derivative of the mean squared error to the first layer.
  Floats target = draw(random, out.back().size(), 1);
  Floats gradient(target.size());
  for (size_t i = 0; i < target.size(); ++i)
    gradient[i] = 2 * (out.back()[i] - target[i]) / float(target.size());
  Backward gradients;
  for (size_t i = layers; i-- > 0;) {
    Floats below(in[i].size()), weight(widths[i] * widths[i + 1]),
        bias(widths[i + 1]);
    linearBackward(getShape(i), in[i].data(), get(i, "weight").data(),
                   gradient.data(), below.data(), weight.data(), bias.data());
    gradients[getName(i, "weight")] = toBf16(weight);
    gradients[getName(i, "bias")] = toBf16(bias);
    if (i)
      geluBackward(below.size(), out[i - 1].data(), below.data());
    gradient = std::move(below);
  }
  return gradients;
}

Window Mlp::getWindow(const Backward &values, int64_t step, int64_t ranks,
                      int64_t backwards) const {
  Window window(ranks);
  for (int64_t r = 0; r < ranks; ++r)
    for (int64_t k = 0; k < backwards; ++k)
      window[r].push_back(
          getGradients(values, 1 + (step * ranks + r) * 1000 + k));
  return window;
}
