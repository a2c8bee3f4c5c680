//===- ReferenceTest.cpp - The f64 loop against results by hand -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Reference.h"
#include "examples/transformer/Bf16.h"
#include "examples/transformer/Precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace transformer;

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(toBf16(1.0f), 0x3f80);
  EXPECT_EQ(toBf16(1.0f + 0x1p-8f), 0x3f80);            // a tie, down to even
  EXPECT_EQ(toBf16(1.0f + 3 * 0x1p-8f), 0x3f82);        // a tie, up to even
  EXPECT_EQ(toBf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81); // above the tie
  EXPECT_EQ(toBf16(-2.0f), 0xc000);
  EXPECT_TRUE(std::isnan(fromBf16(toBf16(std::nanf("")))));
  EXPECT_EQ(fromBf16(toBf16(std::numeric_limits<float>::infinity())),
            std::numeric_limits<float>::infinity());
}

TEST(Rounded, KeepsBytesAndValues) {
  // 1 + 2^-9 is a tie in bf16 and exact in f16; 65520 rounds to infinity there.
  const float values[] = {1.0f + 0x1p-9f, 65520.0f, -0.0f};
  Rounded rounded;
  rounded.assign(Precision::bf16, values, 3);
  EXPECT_EQ(rounded.bytes.size(), 6u);
  EXPECT_EQ(rounded.values[0], 1.0f);
  EXPECT_EQ(rounded.values[1], 65536.0f);
  rounded.assign(Precision::fp16, values, 3);
  EXPECT_EQ(rounded.bytes.size(), 6u);
  EXPECT_EQ(rounded.bytes[1], 0x3c);
  EXPECT_EQ(rounded.bytes[0], 0x02);
  EXPECT_EQ(rounded.values[0], values[0]);
  EXPECT_EQ(rounded.values[1], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(rounded.values[2]));
  rounded.assign(Precision::f32, values, 3);
  EXPECT_EQ(rounded.bytes.size(), 12u);
  EXPECT_EQ(rounded.values[1], 65520.0f);
}

namespace {

const std::vector<Parameter> twoParameters = {{"matrix", 1, 1, true, 0, 0},
                                              {"vector", 1, 0, false, 0, 0}};

void add(Reference &reference, int rank, float matrix, float vector) {
  constexpr double kScale = 4;
  reference.addGradient(rank, 0, {matrix * float(kScale)}, kScale);
  reference.addGradient(rank, 1, {vector * float(kScale)}, kScale);
}

} // namespace

// The first step of AdamW is the gradient's sign times the rate, after decay.
TEST(Reference, FirstStepDecaysMatricesOnly) {
  Reference reference(twoParameters, {{1.0f}, {1.0f}}, /*ranks=*/2);
  add(reference, 0, 0.25f, -0.5f);
  add(reference, 1, 0.25f, -0.25f);
  EXPECT_DOUBLE_EQ(reference.update(0.1), std::hypot(0.25, 0.375));
  EXPECT_NEAR(reference.values(0)[0], 1.0 - 0.1 * 0.1 - 0.1, 1e-8);
  EXPECT_NEAR(reference.values(1)[0], 1.0 + 0.1, 1e-8);
}

TEST(Reference, DroppedSumsAreNoStep) {
  Reference reference(twoParameters, {{1.0f}, {1.0f}}, 1);
  add(reference, 0, std::numeric_limits<float>::infinity(), 1.0f);
  reference.drop();
  add(reference, 0, 0.0f, 0.5f);
  EXPECT_DOUBLE_EQ(reference.update(0.1), 0.5);
  EXPECT_EQ(reference.values(0)[0], 1.0 - 0.1 * 0.1);
}

TEST(Reference, SecondStepForgetsTheFirstStepsSums) {
  Reference reference(twoParameters, {{0.0f}, {0.0f}}, 1);
  add(reference, 0, 0.5f, 0.0f);
  reference.update(0.1);
  add(reference, 0, 0.0f, 0.25f);
  add(reference, 0, 0.0f, 0.25f); // a second backward pass
  EXPECT_DOUBLE_EQ(reference.update(0.1), 0.5);
  double first = 0.05 / (1 - 0.81), second = 0.00025 / (1 - 0.998001);
  EXPECT_NEAR(reference.values(1)[0], -0.1 * first / (std::sqrt(second) + 1e-8),
              1e-12);
}

TEST(Reference, ClipsToNormOne) {
  Reference big(twoParameters, {{0.0f}, {0.0f}}, 1);
  Reference small(twoParameters, {{0.0f}, {0.0f}}, 1);
  // After the clip the same first gradient, so the same moments.
  add(big, 0, 3.0f, 4.0f);
  add(small, 0, 0.6015625f, 0.796875f); // bf16, of norm 0.9984
  EXPECT_DOUBLE_EQ(big.update(0.1), 5.0);
  EXPECT_LT(small.update(0.1), 1.0);
  for (Reference *reference : {&big, &small}) {
    add(*reference, 0, -0.125f, 0.25f);
    reference->update(0.1);
  }
  EXPECT_NEAR(big.values(1)[0], small.values(1)[0], 1e-3);
}

TEST(Reference, DifferenceIsTheLargestAndNeverHidesNaN) {
  Reference reference(twoParameters, {{1.0f}, {2.0f}}, 1);
  float matrix = 1.25f, vector = 1.5f;
  EXPECT_EQ(reference.difference({&matrix, &vector}), 0.5);
  matrix = std::nanf("");
  EXPECT_EQ(reference.difference({&matrix, &vector}), HUGE_VAL);
}
