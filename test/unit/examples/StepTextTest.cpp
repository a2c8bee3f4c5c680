//===- StepTextTest.cpp - The emitted step and the text's batches ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/StepText.h"
#include "examples/transformer/Text.h"

#include <gtest/gtest.h>

using namespace transformer;

// The demo compiles the whole text; here only what the model decides.
TEST(StepText, GroupsAndTypes) {
  ModelShape shape{/*vocabulary=*/11, /*context=*/3, /*width=*/4, /*heads=*/2,
                   /*layers=*/1};
  std::string text = stepText(shape, {1, 8}, Precision::bf16);
  auto contains = [&](const char *part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(contains("zero.mesh @cluster <[\"dp\" = 8]>"));
  EXPECT_TRUE(contains("zero.parameter @token.embedding : 11x4xf32\n"));
  EXPECT_TRUE(contains("zero.parameter @block0.norm1.scale : 4xf32\n"));
  EXPECT_TRUE(contains("zero.group @decay [@token.embedding, "));
  EXPECT_TRUE(contains("zero.group @no_decay [@block0.norm1.scale, "));
  EXPECT_TRUE(contains("zero.optimizer @adamw"));
  EXPECT_TRUE(contains("!zero.value<11x4xbf16, partial = [dp, micro], "
                       "scaled = [dp : 1]>"));
  EXPECT_FALSE(contains("loss_scale"));

  text = stepText(shape, {1, 8}, Precision::fp16);
  EXPECT_TRUE(contains("zero.loss_scale @loss_scale"));
  EXPECT_TRUE(contains("prescaled(loss_scale : 1, accumulation : -1)"));
  EXPECT_TRUE(contains("!zero.value<11x4xf16, partial = [dp, micro], "
                       "scaled = [dp : 1, loss_scale : 1]>"));
}

TEST(StepText, EachLayerIsAUnit) {
  ModelShape shape{/*vocabulary=*/11, /*context=*/3, /*width=*/4, /*heads=*/2,
                   /*layers=*/2};
  std::string text = stepText(shape, {1, 8}, Precision::bf16, /*units=*/true);
  for (const char *part :
       {"zero.unit @block0 [@block0.norm1.scale, @block0.norm1.shift, ",
        ", @block0.mlp.down.bias]\nzero.unit @block1 [@block1.norm1.scale, ",
        ", @block1.mlp.down.bias]\nzero.group"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(stepText(shape, {1, 8}, Precision::bf16).find("zero.unit"),
            std::string::npos);
}

TEST(StepText, StagesSendWhatTheyLeave) {
  ModelShape shape{/*vocabulary=*/11, /*context=*/3, /*width=*/4, /*heads=*/2,
                   /*layers=*/5};
  std::string text = stepText(shape, {3, 2}, Precision::f32);
  for (const char *part :
       {"zero.mesh @cluster <[\"pp\" = 3, \"dp\" = 2]>",
        "zero.activation @residual0 : tensor<?x3x4xf32> over pp from 0 to 1\n",
        "zero.activation @residual1 : tensor<?x3x4xf32> over pp from 1 to 2\n",
        "zero.parameter @token.embedding : 11x4xf32, on = [pp : 0]\n",
        "zero.parameter @block0.mlp.up.bias : 16xf32, on = [pp : 0]\n",
        "zero.parameter @block1.mlp.up.bias : 16xf32, on = [pp : 1]\n",
        "zero.parameter @block2.mlp.up.bias : 16xf32, on = [pp : 1]\n",
        "zero.parameter @block3.mlp.up.bias : 16xf32, on = [pp : 2]\n",
        "zero.parameter @head.weight : 11x4xf32, on = [pp : 2]\n",
        "!zero.value<11x4xf32, partial = [dp, micro], on = [pp : 0], scaled = "
        "[dp : 1]>"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(Text, TargetsAreTheNextCharacters) {
  Text text("the quick brown fox jumps over the lazy dog");
  std::vector<int32_t> inputs, targets;
  text.sample(7, 0, 3, 5, inputs, targets);
  ASSERT_EQ(inputs.size(), 15u);
  for (int piece = 0; piece < 3; ++piece)
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(inputs[5 * piece + i + 1], targets[5 * piece + i]);
}

// Twelve pieces at once, or three by three, are the same twelve; other seeds
// and numbers give others.
TEST(Text, PiecesDependOnTheirNumber) {
  Text text("the quick brown fox jumps over the lazy dog");
  std::vector<int32_t> whole, part, joined, targets;
  text.sample(7, 24, 12, 5, whole, targets);
  for (uint64_t first : {24, 27, 30, 33}) {
    text.sample(7, first, 3, 5, part, targets);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, whole);
  text.sample(8, 24, 12, 5, part, targets);
  EXPECT_NE(part, whole);
  text.sample(7, 36, 12, 5, part, targets);
  EXPECT_NE(part, whole);
}

TEST(Text, MissingFileIsExplained) {
  Text text;
  std::string error;
  EXPECT_FALSE(Text::read("/nowhere/at/all", text, error));
  EXPECT_NE(error.find("cannot read '/nowhere/at/all'"), std::string::npos);
}
