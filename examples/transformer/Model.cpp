//===- Model.cpp - A character-level transformer --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Model.h"

#include "examples/transformer/CrossEntropy.h"
#include "examples/transformer/Gelu.h"
#include "examples/transformer/LayerNorm.h"

#include <algorithm>

namespace transformer {

template <typename T>
Model<T>::Model(const ModelShape &shape, int64_t batch, int64_t stage,
                int64_t stages)
    : shape(shape), part(partOf(shape, stage, stages)),
      rows(batch * shape.context),
      embedding{batch, shape.context, shape.width, shape.vocabulary},
      attention{batch, shape.context, shape.width, shape.heads},
      qkvLinear{rows, shape.width, 3 * shape.width},
      outLinear{rows, shape.width, shape.width},
      upLinear{rows, shape.width, 4 * shape.width},
      downLinear{rows, 4 * shape.width, shape.width},
      headLinear{rows, shape.width, shape.vocabulary},
      blocks(part.end - part.begin), finalNorm(makeNorm()),
      stream(rows * shape.width), branch(stream.size()),
      logits(rows * shape.vocabulary), streamGradient(stream.size()),
      narrow(stream.size()), wide(4 * stream.size()),
      scores(shape.context * shape.context) {
  for (Block &block : blocks) {
    block.norm1 = makeNorm();
    block.norm2 = makeNorm();
    block.qkv.resize(3 * stream.size());
    block.weights.resize(attention.weights());
    block.attended.resize(stream.size());
    block.hidden.resize(4 * stream.size());
    block.activated.resize(4 * stream.size());
  }
  int64_t largest = 0;
  for (const Parameter &parameter : listParameters(shape))
    largest = std::max(largest, parameter.elements());
  weightGradient.resize(largest);
  biasGradient.resize(largest);
}

template <typename T> typename Model<T>::Norm Model<T>::makeNorm() const {
  std::vector<T> values(rows * shape.width);
  return {values, values, std::vector<T>(rows)};
}

template <typename T> void Model<T>::forwardNorm(Norm &norm, int32_t scale) {
  layerNormForward(rows, shape.width, stream.data(), parameters[scale],
                   parameters[scale + 1], norm.output.data(),
                   norm.normalized.data(), norm.inverse.data());
}

template <typename T>
void Model<T>::backwardNorm(const Norm &norm, int32_t scale, const T *yGradient,
                            const GradientSink &sink) {
  layerNormBackward(rows, shape.width, norm.normalized.data(),
                    norm.inverse.data(), parameters[scale], yGradient,
                    streamGradient.data(), weightGradient.data(),
                    biasGradient.data());
  sink(scale + 1, biasGradient.data());
  sink(scale, weightGradient.data());
}

template <typename T>
void Model<T>::forwardLinear(const LinearShape &linear, const std::vector<T> &x,
                             int32_t weight, T *y) {
  linearForward(linear, x.data(), parameters[weight], parameters[weight + 1],
                y);
}

template <typename T>
void Model<T>::backwardLinear(const LinearShape &linear,
                              const std::vector<T> &x, int32_t weight,
                              bool bias, const T *yGradient, T *xGradient,
                              const GradientSink &sink) {
  linearBackward(linear, x.data(), parameters[weight], yGradient, xGradient,
                 weightGradient.data(), bias ? biasGradient.data() : nullptr);
  if (bias)
    sink(weight + 1, biasGradient.data());
  sink(weight, weightGradient.data());
}

template <typename T> void Model<T>::addToStream(const std::vector<T> &values) {
  for (size_t i = 0; i < stream.size(); ++i)
    stream[i] += values[i];
}

template <typename T> void Model<T>::forwardBlock(int64_t layer) {
  Block &block = blocks[layer - part.begin];
  forwardNorm(block.norm1, indexOf(layer, Norm1Scale));
  forwardLinear(qkvLinear, block.norm1.output, indexOf(layer, QkvWeight),
                block.qkv.data());
  attentionForward(attention, block.qkv.data(), block.weights.data(),
                   block.attended.data());
  forwardLinear(outLinear, block.attended, indexOf(layer, OutWeight),
                branch.data());
  addToStream(branch);
  forwardNorm(block.norm2, indexOf(layer, Norm2Scale));
  forwardLinear(upLinear, block.norm2.output, indexOf(layer, UpWeight),
                block.hidden.data());
  geluForward(int64_t(block.hidden.size()), block.hidden.data(),
              block.activated.data());
  forwardLinear(downLinear, block.activated, indexOf(layer, DownWeight),
                branch.data());
  addToStream(branch);
}

template <typename T>
double Model<T>::forward(const int32_t *newInputs, const int32_t *newTargets) {
  inputs.assign(newInputs, newInputs + rows);
  targets.assign(newTargets, newTargets + rows);
  if (part.isFirst)
    embeddingForward(embedding, inputs.data(), parameters[TokenEmbedding],
                     parameters[PositionEmbedding], stream.data());
  for (int64_t layer = part.begin; layer < part.end; ++layer) {
    note(layer, Use::BeforeForward);
    forwardBlock(layer);
    note(layer, Use::AfterForward);
  }
  if (!part.isLast)
    return 0;
  forwardNorm(finalNorm, indexOf(FinalScale));
  linearForward<T>(headLinear, finalNorm.output.data(),
                   parameters[indexOf(HeadWeight)], nullptr, logits.data());
  return crossEntropyForward(rows, shape.vocabulary, targets.data(),
                             logits.data());
}

template <typename T>
void Model<T>::backwardBlock(int64_t layer, const GradientSink &sink) {
  Block &block = blocks[layer - part.begin];
  // streamGradient is that of the block's output; each branch adds to it.
  backwardLinear(downLinear, block.activated, indexOf(layer, DownWeight), true,
                 streamGradient.data(), wide.data(), sink);
  geluBackward(int64_t(wide.size()), block.hidden.data(), wide.data());
  backwardLinear(upLinear, block.norm2.output, indexOf(layer, UpWeight), true,
                 wide.data(), narrow.data(), sink);
  backwardNorm(block.norm2, indexOf(layer, Norm2Scale), narrow.data(), sink);
  backwardLinear(outLinear, block.attended, indexOf(layer, OutWeight), true,
                 streamGradient.data(), narrow.data(), sink);
  attentionBackward(attention, block.qkv.data(), block.weights.data(),
                    narrow.data(), wide.data(), scores.data());
  backwardLinear(qkvLinear, block.norm1.output, indexOf(layer, QkvWeight), true,
                 wide.data(), narrow.data(), sink);
  backwardNorm(block.norm1, indexOf(layer, Norm1Scale), narrow.data(), sink);
}

template <typename T>
void Model<T>::backward(double scale, const GradientSink &sink) {
  if (part.isLast) {
    crossEntropyBackward(rows, shape.vocabulary, targets.data(), scale,
                         logits.data());
    backwardLinear(headLinear, finalNorm.output, indexOf(HeadWeight), false,
                   logits.data(), narrow.data(), sink);
    std::fill(streamGradient.begin(), streamGradient.end(), T(0));
    backwardNorm(finalNorm, indexOf(FinalScale), narrow.data(), sink);
  }
  for (int64_t layer = part.end - 1; layer >= part.begin; --layer) {
    note(layer, Use::BeforeBackward);
    backwardBlock(layer, sink);
    note(layer, Use::AfterBackward);
  }
  if (!part.isFirst)
    return;
  embeddingBackward(embedding, inputs.data(), streamGradient.data(),
                    weightGradient.data(), biasGradient.data());
  sink(PositionEmbedding, biasGradient.data());
  sink(TokenEmbedding, weightGradient.data());
}

template class Model<float>;
template class Model<double>;

} // namespace transformer
