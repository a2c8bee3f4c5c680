//===- reduce.cpp - Sums over the buffers of several ranks ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/host/reduce.h"

#include "core/numeric.h"

#include <algorithm>

using namespace zero_rt;

template <typename From, typename To>
static void reduceAs(const void *const *sources, int32_t ranks, void *dst,
                     bool accumulate, int64_t begin, int64_t end) {
  using Storage = typename From::Storage;
  using Sum = typename To::Sum;
  // Small enough for the first-level cache. One rank at a time, so that the
  // loops are vectorized.
  constexpr int64_t tile = 512;
  Sum sums[tile];
  auto *out = static_cast<typename To::Storage *>(dst);
  for (; begin < end; begin += tile) {
    int64_t size = std::min(tile, end - begin);
    auto *first = static_cast<const Storage *>(sources[0]) + begin;
    // Begins with rank 0, because a sum that begins with 0 would lose the sign
    // of -0.
    for (int64_t i = 0; i < size; ++i)
      sums[i] = Sum(From::load(first[i]));
    for (int32_t r = 1; r < ranks; ++r) {
      auto *source = static_cast<const Storage *>(sources[r]) + begin;
      for (int64_t i = 0; i < size; ++i)
        sums[i] += Sum(From::load(source[i]));
    }
    if (accumulate)
      for (int64_t i = 0; i < size; ++i)
        sums[i] = To::load(out[begin + i]) + To::load(To::store(sums[i]));
    for (int64_t i = 0; i < size; ++i)
      out[begin + i] = To::store(sums[i]);
  }
}

void zero_rt::reduceElements(int64_t dtype, const void *const *sources,
                             int32_t ranks, int64_t sumType, void *dst,
                             bool accumulate, int64_t begin, int64_t end) {
  dispatch(dtype, [&](auto from) {
    dispatch(sumType, [&](auto to) {
      reduceAs<decltype(from), decltype(to)>(sources, ranks, dst, accumulate,
                                             begin, end);
    });
  });
}
