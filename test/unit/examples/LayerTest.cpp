//===- LayerTest.cpp - Backward passes of the layers against differences --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FiniteDifference.h"

#include "examples/transformer/Attention.h"
#include "examples/transformer/CrossEntropy.h"
#include "examples/transformer/Embedding.h"
#include "examples/transformer/Gelu.h"
#include "examples/transformer/LayerNorm.h"
#include "examples/transformer/Linear.h"

using namespace transformer;

TEST(Layer, LinearBackward) {
  LinearShape shape{5, 7, 3};
  auto x = randomValues(35, 1), weight = randomValues(21, 2);
  auto bias = randomValues(3, 3), dy = randomValues(15, 4);
  std::vector<double> y(15), dx(35), dw(21), db(3);
  auto loss = [&] {
    linearForward(shape, x.data(), weight.data(), bias.data(), y.data());
    return dot(y, dy);
  };
  linearBackward(shape, x.data(), weight.data(), dy.data(), dx.data(),
                 dw.data(), db.data());
  expectGradient("x", loss, x, dx);
  expectGradient("weight", loss, weight, dw);
  expectGradient("bias", loss, bias, db);
}

TEST(Layer, LinearWithoutBias) {
  LinearShape shape{2, 3, 2};
  auto x = randomValues(6, 1), weight = randomValues(6, 2);
  std::vector<double> zero(2, 0.0), y(4, 9.0), expected(4);
  linearForward<double>(shape, x.data(), weight.data(), nullptr, y.data());
  linearForward(shape, x.data(), weight.data(), zero.data(), expected.data());
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_DOUBLE_EQ(y[i], expected[i]);
}

TEST(Layer, LayerNormBackward) {
  const int64_t rows = 4, width = 6;
  auto x = randomValues(24, 1), scale = randomValues(6, 2);
  auto shift = randomValues(6, 3), dy = randomValues(24, 4);
  std::vector<double> y(24), normalized(24), inverse(4);
  std::vector<double> dx(24), dscale(6), dshift(6);
  auto loss = [&] {
    layerNormForward(rows, width, x.data(), scale.data(), shift.data(),
                     y.data(), normalized.data(), inverse.data());
    return dot(y, dy);
  };
  loss();
  layerNormBackward(rows, width, normalized.data(), inverse.data(),
                    scale.data(), dy.data(), dx.data(), dscale.data(),
                    dshift.data());
  expectGradient("x", loss, x, dx);
  expectGradient("scale", loss, scale, dscale);
  expectGradient("shift", loss, shift, dshift);
}

// A pre-norm block relies on it: the residual's gradient is already there.
TEST(Layer, LayerNormAddsToTheInputsGradient) {
  auto normalized = randomValues(4, 1), dy = randomValues(4, 2);
  std::vector<double> inverse(2, 1.0), scale(2, 1.0), unused(2);
  std::vector<double> fromZero(4, 0.0), fromTen(4, 10.0);
  for (auto *dx : {&fromZero, &fromTen})
    layerNormBackward(2, 2, normalized.data(), inverse.data(), scale.data(),
                      dy.data(), dx->data(), unused.data(), unused.data());
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(fromTen[i], fromZero[i] + 10.0, 1e-12);
}

TEST(Layer, GeluBackward) {
  auto x = randomValues(40, 1), dy = randomValues(40, 2);
  std::vector<double> y(40);
  auto loss = [&] {
    geluForward(40, x.data(), y.data());
    return dot(y, dy);
  };
  std::vector<double> dx = dy;
  geluBackward(40, x.data(), dx.data());
  expectGradient("x", loss, x, dx);
}

// An exponential that overflows must not become a NaN.
TEST(Layer, GeluIsFiniteFarOut) {
  std::vector<float> x = {-100.0f, 100.0f}, y(2), dx = {1.0f, 1.0f};
  geluForward(2, x.data(), y.data());
  geluBackward(2, x.data(), dx.data());
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 100.0f);
  EXPECT_EQ(dx[0], 0.0f);
  EXPECT_EQ(dx[1], 1.0f);
}

TEST(Layer, AttentionBackward) {
  AttentionShape shape{2, 5, 6, 3};
  auto qkv = randomValues(2 * 5 * 18, 1), dy = randomValues(2 * 5 * 6, 2);
  std::vector<double> weights(shape.weights()), y(dy.size());
  std::vector<double> dqkv(qkv.size()), scratch(25);
  auto loss = [&] {
    attentionForward(shape, qkv.data(), weights.data(), y.data());
    return dot(y, dy);
  };
  loss();
  attentionBackward(shape, qkv.data(), weights.data(), dy.data(), dqkv.data(),
                    scratch.data());
  expectGradient("qkv", loss, qkv, dqkv);
}

TEST(Layer, AttentionDoesNotLookAhead) {
  AttentionShape shape{1, 4, 2, 1};
  auto qkv = randomValues(4 * 6, 1);
  std::vector<double> weights(shape.weights()), before(8), after(8);
  attentionForward(shape, qkv.data(), weights.data(), before.data());
  for (int i = 0; i < 6; ++i)
    qkv[3 * 6 + i] += 1.0; // the last position
  attentionForward(shape, qkv.data(), weights.data(), after.data());
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(before[i], after[i]);
  EXPECT_NE(before[6], after[6]);
}

TEST(Layer, EmbeddingBackward) {
  EmbeddingShape shape{2, 3, 4, 5};
  std::vector<int32_t> inputs = {0, 4, 4, 1, 0, 4}; // 2 and 3 do not occur
  auto token = randomValues(20, 1), position = randomValues(12, 2);
  auto dy = randomValues(24, 3);
  std::vector<double> y(24), dtoken(20, 7.0), dposition(12, 7.0);
  auto loss = [&] {
    embeddingForward(shape, inputs.data(), token.data(), position.data(),
                     y.data());
    return dot(y, dy);
  };
  embeddingBackward(shape, inputs.data(), dy.data(), dtoken.data(),
                    dposition.data());
  expectGradient("token", loss, token, dtoken);
  expectGradient("position", loss, position, dposition);
}

TEST(Layer, CrossEntropyBackward) {
  auto logits = randomValues(3 * 4, 1);
  std::vector<int32_t> targets = {2, 0, 3};
  auto loss = [&] {
    auto copy = logits;
    return 0.25 * crossEntropyForward(3, 4, targets.data(), copy.data());
  };
  auto gradient = logits;
  crossEntropyForward(3, 4, targets.data(), gradient.data());
  crossEntropyBackward(3, 4, targets.data(), 0.25, gradient.data());
  expectGradient("logits", loss, logits, gradient);
}

TEST(Layer, CrossEntropyOfImpossibleTargetIsFinite) {
  std::vector<float> logits = {0.0f, 1000.0f};
  std::vector<int32_t> targets = {0};
  EXPECT_EQ(crossEntropyForward(1, 2, targets.data(), logits.data()), 1000.0);
}
