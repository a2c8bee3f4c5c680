//===- CalculatorTest.cpp - Rounding and bounds ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Array.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace zero;

static double bf16(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Every pair of neighbours of bf16: what lies between goes to the nearer one,
// and the middle to the even one.
TEST(Rounding, BF16IsToNearestEven) {
  mlir::MLIRContext context;
  const Format &format = *getFormat(mlir::BFloat16Type::get(&context));
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    double low = bf16(bits);
    double high = bf16(bits + 1);
    double middle = low + (high - low) / 2;
    ASSERT_EQ(roundTo(format, low), low);
    ASSERT_EQ(roundTo(format, middle), bits % 2 == 0 ? low : high);
    ASSERT_EQ(roundTo(format, std::nextafter(middle, low)), low);
    ASSERT_EQ(roundTo(format, -std::nextafter(middle, high)), -high);
  }
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(roundTo(format, 0x1.FFp127), infinity);
  EXPECT_EQ(roundTo(format, 0x1.FEFp127), 0x1.FEp127);
  EXPECT_TRUE(std::signbit(roundTo(format, -1e-60)));
  EXPECT_TRUE(std::isnan(roundTo(format, std::nan(""))));
}

TEST(Rounding, F16HasSubnormalsAndInfinity) {
  mlir::MLIRContext context;
  const Format &format = *getFormat(mlir::Float16Type::get(&context));
  EXPECT_EQ(roundTo(format, 0x1p-25), 0);
  EXPECT_EQ(roundTo(format, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(roundTo(format, 65519), 65504);
  EXPECT_EQ(roundTo(format, 65520), std::numeric_limits<double>::infinity());
}

// Chains of random operations stay within their bounds.
TEST(Bounds, HoldForRandomChains) {
  Calculator typed(Arithmetic::Typed);
  Calculator exact(Arithmetic::F64);
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (int chain = 0; chain < 2000; ++chain) {
    Number t = typed.read(kF32, normal(random));
    Number e = t;
    for (int op = 0; op < 20; ++op) {
      Number x = typed.read(kF32, normal(random));
      Number y = typed.read(kF32, normal(random));
      switch (random() % 7) {
      case 0:
        t = typed.add(kF32, t, x), e = exact.add(kF32, e, x);
        break;
      case 1:
        t = typed.mul(kF32, t, x), e = exact.mul(kF32, e, x);
        break;
      case 2:
        t = typed.div(kF32, x, t), e = exact.div(kF32, x, e);
        break;
      case 3:
        t = typed.fma(kF32, t, x, y), e = exact.fma(kF32, e, x, y);
        break;
      case 4:
        t = typed.sqrt(kF32, typed.abs(t)), e = exact.sqrt(kF32, exact.abs(e));
        break;
      case 5:
        t = typed.minimum(t, x, false), e = exact.minimum(e, x, false);
        break;
      case 6:
        t = typed.copySign(x, t), e = exact.copySign(x, e);
        break;
      }
      ASSERT_TRUE(!(std::fabs(t.value - e.value) > e.bound))
          << t.value << " is not within " << e.bound << " of " << e.value;
    }
  }
}

TEST(Bounds, AComparisonThatMayTurnOverSaysSo) {
  Calculator exact(Arithmetic::F64);
  Number sure =
      exact.compare(mlir::arith::CmpFPredicate::OLT, {1, 0.1}, {2, 0});
  EXPECT_EQ(sure.bound, 0);
  Number unsure =
      exact.compare(mlir::arith::CmpFPredicate::OLT, {1, 0.6}, {2, 0.6});
  EXPECT_EQ(unsure.value, 1);
  EXPECT_EQ(unsure.bound, 1);
  EXPECT_GE(exact.select(unsure, {5, 0}, {7, 0}).bound, 2);
  EXPECT_EQ(exact.select(sure, {5, 0}, {7, 0}).bound, 0);
}

static double foldInLanes(const std::vector<double> &terms, size_t begin) {
  std::vector<double> lanes(32, 0.0);
  for (size_t i = begin; i < std::min(terms.size(), begin + 4096); ++i)
    lanes[i % 32] += terms[i];
  while (lanes.size() > 1) {
    std::vector<double> folded;
    for (size_t i = 0; i < lanes.size() / 2; ++i)
      folded.push_back(lanes[i] + lanes[i + lanes.size() / 2]);
    lanes = folded;
  }
  return lanes[0];
}

// Lanes and blocks, and lanes of blocks, written out another way.
TEST(Sums, OfOneUnboundedNumberAreUnbounded) {
  Calculator calculator(Arithmetic::F64);
  Number sum = sumInLanes(calculator, Number{1, HUGE_VAL});
  EXPECT_EQ(sum.bound, HUGE_VAL);
  EXPECT_EQ(calculator.sqrt(kF64, sum).bound, HUGE_VAL);
}

TEST(Sums, AreInLanesThenBlocks) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (size_t size : {0, 1, 5000, 64 * 4096 + 1}) {
    std::vector<double> values(size), sums;
    std::vector<Number> terms(size);
    for (size_t i = 0; i < size; ++i)
      terms[i].value = values[i] = normal(random);
    for (size_t begin = 0; begin < size; begin += 4096)
      sums.push_back(foldInLanes(values, begin));
    EXPECT_EQ(sumInLanes(Calculator(Arithmetic::Typed), terms).value,
              foldInLanes(sums, 0))
        << size;
  }
}
