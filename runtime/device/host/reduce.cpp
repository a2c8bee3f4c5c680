//===- reduce.cpp - Sums over the buffers of several ranks ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/host/reduce.h"

#include "core/numeric.h"
#include "device/host/copy.h"

#include <algorithm>

using namespace zero_rt;

namespace {
/// Sums of |From|, rounded to |To|.
template <typename From, typename To> struct Reduction {
  using Storage = typename From::Storage;
  using Result = typename To::Storage;
  using Sum = typename To::Sum;
  /// Few enough for registers; with conversions for the first-level cache.
  static constexpr int64_t block =
      sizeof(Storage) == sizeof(Sum) && sizeof(Result) == sizeof(Sum)
          ? 128 / sizeof(Sum)
          : 512;

  const void *const *sources;
  int32_t ranks;
  Result *dst;
  bool accumulate;

  /// Sums the |size| elements from |begin| into |out|. With the constant
  /// |block| the loops are vectorized.
  void sum(int64_t begin, int64_t size, Result *out) const {
    Sum sums[block];
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
        sums[i] = To::load(dst[begin + i]) + To::load(To::store(sums[i]));
    for (int64_t i = 0; i < size; ++i)
      out[i] = To::store(sums[i]);
  }

  void run(int64_t begin, int64_t end, bool bypassesCache) const {
    alignas(storeBytes) Result out[block];
    bypassesCache &= isStoreAligned(dst + begin);
    for (; begin + block <= end; begin += block) {
      sum(begin, block, bypassesCache ? out : dst + begin);
      if (bypassesCache)
        storeAround(dst + begin, out, sizeof(out));
    }
    sum(begin, end - begin, dst + begin);
    if (bypassesCache)
      _mm_sfence(); // other threads may read
  }
};
} // namespace

void zero_rt::reduceElements(int64_t dtype, const void *const *sources,
                             int32_t ranks, int64_t sumType, void *dst,
                             bool accumulate, int64_t begin, int64_t end,
                             bool bypassesCache) {
  dispatch(dtype, [&](auto from) {
    dispatch(sumType, [&](auto to) {
      using Type = Reduction<decltype(from), decltype(to)>;
      auto *results = static_cast<typename Type::Result *>(dst);
      Type{sources, ranks, results, accumulate}.run(begin, end, bypassesCache);
    });
  });
}
