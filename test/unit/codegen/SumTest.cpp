//===- SumTest.cpp - Sums of CPU kernels, bit for bit ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"

#include <cmath>

using namespace zero::test;

namespace {

const char *const kKernels = R"(
zrt.kernel @squares [read f32] scalars 0 sums {
^body(%g: f32):
  %x = arith.extf %g : f32 to f64
  %s = arith.mulf %x, %x : f64
  zrt.yield %s : f64
}
zrt.kernel @scale_and_sum [update f64] scalars 2 predicated sums {
^body(%x: f64, %skip: f64, %factor: f64):
  %y = arith.mulf %x, %factor : f64
  zrt.yield %y, %y : f64, f64
}
zrt.kernel @count [read f32] scalars 0 sums {
^body(%g: f32):
  %one = arith.constant 1.0 : f64
  zrt.yield %one : f64
}
)";

/// The definition: element i to lane i mod 32, lanes folded in halves.
template <typename Element>
double sumBlock(int64_t begin, int64_t end, Element element) {
  double lanes[32] = {};
  for (int64_t i = begin; i < end; ++i)
    lanes[i % 32] += element(i);
  for (int half = 16; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  return lanes[0];
}

template <typename Element>
void fillPartials(Array<double> &partials, int64_t begin, int64_t end,
                  Element element) {
  for (int64_t block = begin; block < end; block += 4096)
    partials[block / 4096] =
        sumBlock(block, std::min(block + 4096, end), element);
}

class Sum : public testing::TestWithParam<Target> {};

} // namespace

TEST_P(Sum, FollowsTheFixedOrder) {
  KernelLibrary library(kKernels, GetParam());
  std::mt19937 random(3);
  std::uniform_real_distribution<float> exponent(-60, 60);
  for (int64_t begin : {0, 8192})
    for (int64_t size : kSizes) {
      int64_t end = begin + size;
      Array<float> in(end);
      for (int64_t i = 0; i < end; ++i)
        in[i] = std::exp2(exponent(random));
      Array<double> partials(8), expected(8);
      fillPartials(expected, begin, end,
                   [&](int64_t i) { return double(in[i]) * double(in[i]); });
      void *operands[] = {in.data()};
      library.kernel("squares")(operands, nullptr, begin, end, partials.data());
      SCOPED_TRACE(testing::Message() << begin << " + " << size);
      expectSame(partials, expected);
    }
}

TEST_P(Sum, WritesWhatItSums) {
  KernelLibrary library(kKernels, GetParam());
  for (int64_t size : kSizes)
    for (double skip : {0.0, -0.0, 1.0}) {
      // Negative zeros: a lane starts at 0, and so the sum is 0, not -0.
      Array<double> in(size), partials(4), expectedPartials(4);
      for (int64_t i = 0; i < size; ++i)
        in[i] = size == 95 ? -0.0 : std::sin(i);
      Array<double> expected = in;
      if (skip == 0) {
        for (int64_t i = 0; i < size; ++i)
          expected[i] *= 3.7;
        fillPartials(expectedPartials, 0, size,
                     [&](int64_t i) { return expected[i]; });
      }
      double scalars[] = {skip, 3.7};
      void *operands[] = {in.data()};
      library.kernel("scale_and_sum")(operands, scalars, 0, size,
                                      partials.data());
      SCOPED_TRACE(testing::Message() << size << " elements, skip " << skip);
      expectSame(in, expected);
      expectSame(partials, expectedPartials);
    }
}

TEST_P(Sum, SumsAConstant) {
  KernelLibrary library(kKernels, GetParam());
  Array<float> in(4096 + 33);
  double partials[2];
  void *operands[] = {in.data()};
  library.kernel("count")(operands, nullptr, 0, in.size(), partials);
  EXPECT_EQ(partials[0], 4096);
  EXPECT_EQ(partials[1], 33);
}

// A finite f32 whose square is not one, a NaN and an infinity reach the sum.
TEST_P(Sum, KeepsWhatIsNotFinite) {
  KernelLibrary library(kKernels, GetParam());
  for (float value : {1e30f, INFINITY, NAN}) {
    Array<float> in(70);
    for (int64_t i = 0; i < in.size(); ++i)
      in[i] = i == 65 ? value : 0;
    double partial;
    void *operands[] = {in.data()};
    library.kernel("squares")(operands, nullptr, 0, in.size(), &partial);
    double expected = double(value) * double(value);
    EXPECT_TRUE(partial == expected ||
                (std::isnan(partial) && std::isnan(expected)))
        << partial;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Sum, testing::ValuesIn(getTargets()),
                         printTarget);
