//===- LargeCopyTest.cpp - Sums and copies around the cache ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/numeric.h"
#include "device/host/copy.h"
#include "device/host/reduce.h"

#include "gtest/gtest.h"

#include <numeric>
#include <vector>

using namespace zero_rt;

namespace {

// Also where neither the ends nor the address are multiples of a store.
TEST(LargeCopy, SumsHaveTheSameBits) {
  constexpr int64_t elements = 3000;
  std::vector<double> values(elements);
  for (int64_t i = 0; i < elements; ++i)
    values[size_t(i)] = double(i * 7919 % 1009) / 64 - 7;
  for (int32_t dtype : {ZERO_RT_F16, ZERO_RT_BF16, ZERO_RT_F32, ZERO_RT_F64})
    for (int32_t sumType : {dtype, int32_t(ZERO_RT_F64)})
      for (bool accumulate : {false, true})
        for (int64_t begin : {0, 1, 8, 640}) {
          std::vector<double> source(elements), sums[2];
          convert(dtype, source.data(), ZERO_RT_F64, values.data(), elements);
          const void *sources[] = {source.data(), source.data(), source.data()};
          for (bool bypassesCache : {false, true}) {
            std::vector<double> &out = sums[bypassesCache];
            out.assign(elements, 0.5);
            reduceElements(dtype, sources, 3, sumType, out.data(), accumulate,
                           begin, elements - 5, bypassesCache);
          }
          EXPECT_EQ(sums[0], sums[1]) << dtypeName(dtype) << " from " << begin;
          EXPECT_NE(sums[1], std::vector<double>(elements, 0.5));
        }
}

TEST(LargeCopy, CopiesAllBytesAndNoOther) {
  for (int64_t shift : {0, 3})
    for (int64_t bytes : {int64_t(0), int64_t(100), leastLargeBytes - 1,
                          leastLargeBytes, leastLargeBytes + 7}) {
      auto size = size_t(bytes);
      std::vector<uint8_t> from(size), to(size + 16, 0xee);
      std::iota(from.begin(), from.end(), uint8_t(1));
      std::vector<uint8_t> expected = to;
      std::copy(from.begin(), from.end(), expected.begin() + shift);
      copyOnHost(to.data() + shift, from.data(), bytes);
      EXPECT_TRUE(to == expected) << bytes << " bytes at " << shift;
    }
}

} // namespace
