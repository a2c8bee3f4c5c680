//===- Model.h - A character-level transformer ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_MODEL_H
#define ZERO_EXAMPLES_TRANSFORMER_MODEL_H

#include "examples/transformer/Attention.h"
#include "examples/transformer/Embedding.h"
#include "examples/transformer/Linear.h"
#include "examples/transformer/Parameters.h"

#include <functional>
#include <vector>

namespace transformer {

/// What a model is about to do with the parameters of a layer, or has done.
enum class Use { BeforeForward, AfterForward, BeforeBackward, AfterBackward };

/// Token and position embedding, pre-norm blocks of attention and GELU MLP with
/// residuals, a final LayerNorm and an untied head. Holds the activations of
/// one batch; the parameters belong to someone else.
template <typename T> class Model {
public:
  /// Learns that a layer's parameters are read next, or are no longer.
  using LayerHook = std::function<void(int64_t layer, Use)>;

  /// Takes the gradient of one parameter, valid until it returns.
  using GradientSink = std::function<void(int32_t parameter, const T *)>;

  /// The part of a pipeline stage; all of it by default.
  Model(const ModelShape &shape, int64_t batch, int64_t stage = 0,
        int64_t stages = 1);

  /// |values| are in the order of listParameters, and are read at every
  /// forward and backward; those of other stages may be null.
  void setParameters(std::vector<const T *> values) {
    parameters = std::move(values);
  }

  void setLayerHook(LayerHook hook) { onLayer = std::move(hook); }

  /// |inputs| and |targets| have batch x context tokens. Returns the mean loss,
  /// or 0 where that is the business of a later stage.
  double forward(const int32_t *inputs, const int32_t *targets);

  /// What goes from stage to stage, batch x context x width: the values that a
  /// forward of a stage begins with and leaves, and their gradients.
  std::vector<T> &residuals() { return stream; }
  std::vector<T> &residualGradients() { return streamGradient; }

  /// The gradients of |scale| times the last forward's loss: hands each over
  /// once, as soon as it is known, which is from the last layer to the first.
  void backward(double scale, const GradientSink &sink);

  /// The probabilities of the last forward, batch x context x vocabulary.
  const T *probabilities() const { return logits.data(); }

private:
  /// A LayerNorm's output and what its backward pass needs.
  struct Norm {
    std::vector<T> output, normalized, inverse;
  };
  struct Block {
    Norm norm1, norm2;
    std::vector<T> qkv, weights, attended, hidden, activated;
  };

  int32_t indexOf(int64_t layer, BlockParameter which) const {
    return FirstBlock + int32_t(layer) * BlockParameters + which;
  }
  int32_t indexOf(LastParameter which) const {
    return FirstBlock + int32_t(shape.layers) * BlockParameters + which;
  }
  Norm makeNorm() const;
  void forwardNorm(Norm &norm, int32_t scale);
  void backwardNorm(const Norm &norm, int32_t scale, const T *yGradient,
                    const GradientSink &sink);
  void forwardLinear(const LinearShape &linear, const std::vector<T> &x,
                     int32_t weight, T *y);
  void backwardLinear(const LinearShape &linear, const std::vector<T> &x,
                      int32_t weight, bool bias, const T *yGradient,
                      T *xGradient, const GradientSink &sink);
  void note(int64_t layer, Use use) {
    if (onLayer)
      onLayer(layer, use);
  }
  void forwardBlock(int64_t layer);
  void backwardBlock(int64_t layer, const GradientSink &sink);
  void addToStream(const std::vector<T> &branch);

  ModelShape shape;
  Part part;
  int64_t rows;
  EmbeddingShape embedding;
  AttentionShape attention;
  LinearShape qkvLinear, outLinear, upLinear, downLinear, headLinear;
  std::vector<const T *> parameters;
  LayerHook onLayer;
  std::vector<int32_t> inputs, targets;
  std::vector<Block> blocks; // of the part
  Norm finalNorm;
  std::vector<T> stream, branch, logits;
  // Of the backward pass.
  std::vector<T> streamGradient, narrow, wide, scores, weightGradient,
      biasGradient;
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_MODEL_H
