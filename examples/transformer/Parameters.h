//===- Parameters.h - What the model's parameters are called ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_PARAMETERS_H
#define ZERO_EXAMPLES_TRANSFORMER_PARAMETERS_H

#include <cstdint>
#include <string>
#include <vector>

namespace transformer {

struct ModelShape {
  int64_t vocabulary = 0;
  int64_t context = 64;
  int64_t width = 64;
  int64_t heads = 4;
  int64_t layers = 2;
};

struct Parameter {
  std::string name;
  int64_t rows;
  int64_t columns; // 0: a vector
  bool decay;      // matrices; biases and LayerNorm are not pulled to zero
  double mean;     // of the initial values
  double deviation;
  int64_t stage = 0; // of the pipeline

  int64_t elements() const { return rows * (columns ? columns : 1); }
};

/// What a pipeline stage has of a model: some layers, and what comes before the
/// first or behind the last.
struct Part {
  int64_t begin; // layers
  int64_t end;
  bool isFirst;
  bool isLast;
};

/// The part of |stage|, one of |stages|, of which there are at most as many as
/// layers.
Part partOf(const ModelShape &shape, int64_t stage, int64_t stages);

/// In the order of the forward, which is the order of the step's text.
std::vector<Parameter> listParameters(const ModelShape &shape,
                                      int64_t stages = 1);

/// Positions in that list.
enum GlobalParameter : int32_t {
  TokenEmbedding,
  PositionEmbedding,
  FirstBlock
};
enum BlockParameter : int32_t {
  Norm1Scale,
  Norm1Shift,
  QkvWeight,
  QkvBias,
  OutWeight,
  OutBias,
  Norm2Scale,
  Norm2Shift,
  UpWeight,
  UpBias,
  DownWeight,
  DownBias,
  BlockParameters
};
enum LastParameter : int32_t { FinalScale, FinalShift, HeadWeight };

/// The initial values of all parameters; the same on every rank.
std::vector<std::vector<float>>
initialValues(const std::vector<Parameter> &parameters, uint64_t seed);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_PARAMETERS_H
