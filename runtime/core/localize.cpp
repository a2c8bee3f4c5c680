//===- localize.cpp - From bucket coordinates to those of a rank ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/localize.h"

#include <algorithm>

using namespace zero_rt;

Range zero_rt::intersect(Range a, Range b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// The first element of slice |rank|: floor(rank * elements / ranks), in an
/// order that cannot overflow.
static int64_t sliceBegin(int64_t elements, int64_t rank, int64_t ranks) {
  return elements / ranks * rank + elements % ranks * rank / ranks;
}

Range zero_rt::ownedSlice(int64_t elements, int32_t rank, int32_t ranks) {
  return {sliceBegin(elements, rank, ranks),
          sliceBegin(elements, int64_t(rank) + 1, ranks)};
}

std::vector<int32_t> zero_rt::groupOf(const zero_rt_library &library,
                                      int64_t axes, int32_t rank) {
  // The last axis is the fastest.
  std::vector<int32_t> group{0};
  int64_t stride = 1;
  for (int64_t a = library.num_axes - 1; a >= 0; --a) {
    int64_t size = library.axes[a].size;
    int64_t coordinate = rank / stride % size;
    bool varies = axes >> a & 1;
    std::vector<int32_t> next;
    for (int64_t c = varies ? 0 : coordinate;
         c < (varies ? size : coordinate + 1); ++c)
      for (int32_t inner : group)
        next.push_back(int32_t(c * stride) + inner);
    group = std::move(next);
    stride *= size;
  }
  return group;
}

Range zero_rt::localize(Range global, Range domain) {
  Range cut = intersect(global, domain);
  if (cut.empty())
    return {};
  return {cut.begin - domain.begin, cut.end - domain.begin};
}
