//===- NumericTest.cpp - Conversions between element types ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/numeric.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace zero_rt;

namespace {

// Every f16 and bf16 value survives the way to f64 and back.
TEST(Numeric, WideningIsExact) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float half = floatFromF16(uint16_t(bits));
    if (!std::isnan(half)) {
      ASSERT_EQ(f16FromDouble(half), bits);
    }
    float brain = floatFromBF16(uint16_t(bits));
    if (!std::isnan(brain)) {
      ASSERT_EQ(bf16FromDouble(brain), bits);
      ASSERT_EQ(bf16FromFloat(brain), bits);
    }
  }
}

// A midpoint goes to the even neighbour, and what lies beside it to its side.
template <typename Type> void checkMidpoints(uint16_t infinity) {
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    double low = Type::load(uint16_t(bits));
    double high = Type::load(uint16_t(bits + 1));
    double middle = (low + high) / 2; // exact in f64
    uint32_t even = bits % 2 ? bits + 1 : bits;
    ASSERT_EQ(Type::fromDouble(middle), even);
    ASSERT_EQ(Type::fromDouble(std::nextafter(middle, low)), bits);
    ASSERT_EQ(Type::fromDouble(std::nextafter(middle, high)), bits + 1);
    ASSERT_EQ(Type::fromDouble(-middle), even | 0x8000);
  }
}

TEST(Numeric, NarrowingRoundsOnceToNearestEven) {
  checkMidpoints<F16>(0x7C00);
  checkMidpoints<BF16>(0x7F80);
}

TEST(Numeric, NarrowingFromFloatAgreesWithFromDouble) {
  for (uint64_t bits = 0; bits < 0x100000000; bits += 4093) {
    float value = bitCast<float>(uint32_t(bits));
    ASSERT_EQ(bf16FromFloat(value), bf16FromDouble(value)) << value;
    ASSERT_EQ(f16FromFloat(value), f16FromDouble(value)) << value;
  }
  // f32 holds the midpoints of f16.
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    float low = floatFromF16(uint16_t(bits));
    float high = bits == 0x7BFF ? 65536 : floatFromF16(uint16_t(bits + 1));
    float middle = (low + high) / 2;
    for (float value :
         {low, std::nextafter(low, high), std::nextafter(middle, low), middle,
          std::nextafter(middle, high), std::nextafter(high, low)}) {
      ASSERT_EQ(f16FromFloat(value), f16FromDouble(value)) << value;
      ASSERT_EQ(f16FromFloat(-value), f16FromDouble(-value)) << value;
    }
  }
}

TEST(Numeric, LimitsAndNans) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(f16FromDouble(65519.999), 0x7BFF);
  EXPECT_EQ(f16FromDouble(65520), 0x7C00);
  EXPECT_EQ(f16FromDouble(1e300), 0x7C00);
  EXPECT_EQ(f16FromDouble(-infinity), 0xFC00);
  EXPECT_EQ(f16FromDouble(0x1p-25), 0x0000);
  EXPECT_EQ(f16FromDouble(0x1.8p-25), 0x0001);
  EXPECT_EQ(f16FromDouble(-0.0), 0x8000);
  EXPECT_EQ(f16FromDouble(std::nan("")), 0x7E00);
  EXPECT_EQ(bf16FromDouble(infinity), 0x7F80);
  EXPECT_EQ(bf16FromDouble(std::nan("")), 0x7FC0);
  EXPECT_EQ(bf16FromFloat(-std::nanf("")), 0x7FC0);
  EXPECT_EQ(bf16FromFloat(std::numeric_limits<float>::max()), 0x7F80);
}

// Through f32 this value would become the midpoint and then round down.
TEST(Numeric, DoublesAreNotRoundedTwice) {
  double value = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(bf16FromDouble(value), 0x3F81);
  EXPECT_EQ(bf16FromFloat(float(value)), 0x3F80);
}

TEST(Numeric, ConvertsBetweenAllTypes) {
  const double values[] = {0, -0.0, 1.5, -2.25, 128, 0.0625};
  for (int from = ZERO_RT_F16; from <= ZERO_RT_F64; ++from) {
    for (int to = ZERO_RT_F16; to <= ZERO_RT_F64; ++to) {
      double source[6], target[6], back[6];
      convert(from, source, ZERO_RT_F64, values, 6);
      convert(to, target, from, source, 6);
      convert(ZERO_RT_F64, back, to, target, 6);
      EXPECT_EQ(std::memcmp(values, back, sizeof(back)), 0)
          << dtypeName(from) << " to " << dtypeName(to);
    }
  }
}

// The quiet bit is clear, the fraction is not zero.
TEST(Numeric, PoisonIsSignalling) {
  EXPECT_TRUE(std::isnan(floatFromF16(F16::poison)));
  EXPECT_EQ(F16::poison & 0x0200, 0);
  EXPECT_TRUE(std::isnan(floatFromBF16(BF16::poison)));
  EXPECT_EQ(BF16::poison & 0x0040, 0);
  EXPECT_EQ(F32::poison & 0x7FC00000, 0x7F800000u);
  EXPECT_NE(F32::poison & 0x003FFFFF, 0u);
  EXPECT_EQ(F64::poison & 0x7FF8000000000000, 0x7FF0000000000000u);
  uint32_t words[3] = {};
  words[0] = words[1] = uint32_t(poisonOf(ZERO_RT_F32));
  EXPECT_EQ(words[1], F32::poison);
  EXPECT_EQ(words[2], 0u);
}

TEST(Numeric, NobodyComputesWithOtherTypes) {
  for (int64_t dtype :
       {int64_t(ZERO_RT_I8), int64_t(ZERO_RT_I64), int64_t(-1), int64_t(99)})
    EXPECT_THROW(bitsOf(dtype, 1), std::invalid_argument) << dtype;
}

} // namespace
