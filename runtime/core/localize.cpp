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

Range zero_rt::heldRange(const zero_rt_buffer_row &buffer, int32_t rank,
                         int32_t ranks) {
  if (buffer.sharded)
    return ownedSlice(buffer.elements, rank, ranks);
  return {0, buffer.elements};
}

Range zero_rt::localize(Range global, Range domain) {
  Range cut = intersect(global, domain);
  if (cut.empty())
    return {};
  return {cut.begin - domain.begin, cut.end - domain.begin};
}
