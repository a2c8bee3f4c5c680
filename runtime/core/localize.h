//===- localize.h - From bucket coordinates to those of a rank --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library describes all ranks. Only this file knows which part of a bucket a
// rank owns, and where that part is in its memory.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_LOCALIZE_H
#define ZERO_RT_CORE_LOCALIZE_H

#include "zero_rt/library.h"

#include <vector>

namespace zero_rt {

/// Elements [begin, end); empty when begin >= end.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool empty() const { return begin >= end; }
  int64_t size() const { return empty() ? 0 : end - begin; }
};

Range intersect(Range a, Range b);

/// The slice of a row of |elements| that rank |rank| of a process group of
/// |ranks| owns. |elements| need not be a multiple of |ranks|.
Range ownedSlice(int64_t elements, int32_t rank, int32_t ranks);

/// The ranks of the process group of |rank| over a set of axes, in order.
std::vector<int32_t> groupOf(const zero_rt_library &library, int64_t axes,
                             int32_t rank);

/// The intersection of |global| and |domain|, relative to the beginning of
/// |domain|.
Range localize(Range global, Range domain);

} // namespace zero_rt

#endif // ZERO_RT_CORE_LOCALIZE_H
