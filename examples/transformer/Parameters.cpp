//===- Parameters.cpp - What the model's parameters are called ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Parameters.h"

#include <cmath>
#include <random>

namespace transformer {

Part partOf(const ModelShape &shape, int64_t stage, int64_t stages) {
  return {shape.layers * stage / stages, shape.layers * (stage + 1) / stages,
          stage == 0, stage + 1 == stages};
}

std::vector<Parameter> listParameters(const ModelShape &shape, int64_t stages) {
  int64_t width = shape.width;
  int64_t stage = 0;
  std::vector<Parameter> list;
  auto matrix = [&](std::string name, int64_t rows, int64_t columns,
                    double deviation) {
    list.push_back(
        {std::move(name), rows, columns, true, 0.0, deviation, stage});
  };
  auto vector = [&](std::string name, int64_t elements, double value) {
    list.push_back({std::move(name), elements, 0, false, value, 0.0, stage});
  };
  // GPT-2's: what is added to the residual stream is small enough that the
  // stream's size does not grow with the number of layers.
  double usual = 0.02, residual = 0.02 / std::sqrt(2.0 * shape.layers);
  matrix("token.embedding", shape.vocabulary, width, usual);
  matrix("position.embedding", shape.context, width, usual);
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    stage += layer == partOf(shape, stage, stages).end;
    std::string block = "block" + std::to_string(layer) + ".";
    vector(block + "norm1.scale", width, 1.0);
    vector(block + "norm1.shift", width, 0.0);
    matrix(block + "attention.qkv.weight", 3 * width, width, usual);
    vector(block + "attention.qkv.bias", 3 * width, 0.0);
    matrix(block + "attention.out.weight", width, width, residual);
    vector(block + "attention.out.bias", width, 0.0);
    vector(block + "norm2.scale", width, 1.0);
    vector(block + "norm2.shift", width, 0.0);
    matrix(block + "mlp.up.weight", 4 * width, width, usual);
    vector(block + "mlp.up.bias", 4 * width, 0.0);
    matrix(block + "mlp.down.weight", width, 4 * width, residual);
    vector(block + "mlp.down.bias", width, 0.0);
  }
  vector("final_norm.scale", width, 1.0);
  vector("final_norm.shift", width, 0.0);
  matrix("head.weight", shape.vocabulary, width, usual);
  return list;
}

std::vector<std::vector<float>>
initialValues(const std::vector<Parameter> &parameters, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<float>> values;
  for (const Parameter &parameter : parameters) {
    std::vector<float> &value = values.emplace_back(parameter.elements());
    for (float &element : value)
      element = float(parameter.mean + parameter.deviation * normal(generator));
  }
  return values;
}

} // namespace transformer
