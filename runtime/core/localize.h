//===- localize.h - From bucket coordinates to those of a rank --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library is global. This is the one place that knows which part of a bucket
// a rank owns and where that part lies in its memory.
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

/// The slice of an |elements|-long row that rank |rank| of a group of |ranks|
/// owns. Also right when the group does not divide the row.
Range ownedSlice(int64_t elements, int32_t rank, int32_t ranks);

/// The ranks of the group of a set of axes that |rank| is in, in order.
std::vector<int32_t> groupOf(const zero_rt_library &library, int64_t axes,
                             int32_t rank);

/// |global| cut to |domain| and counted from the beginning of it.
Range localize(Range global, Range domain);

} // namespace zero_rt

#endif // ZERO_RT_CORE_LOCALIZE_H
