//===- reduce.h - Sums over the buffers of several ranks --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_HOST_REDUCE_H
#define ZERO_RT_DEVICE_HOST_REDUCE_H

#include <cstdint>

namespace zero_rt {

/// Sums elements [begin, end) of |sources|, arrays of |dtype|, one per rank in
/// order, into the same elements of |dst|, of |sumType|, and rounds once. With
/// |accumulate| the rounded sum is then added to |dst|. |dst| may be one of the
/// sources if the types are equal. With |bypassesCache| the results are not
/// kept in the cache, which is faster for more than fits.
void reduceElements(int64_t dtype, const void *const *sources, int32_t ranks,
                    int64_t sumType, void *dst, bool accumulate, int64_t begin,
                    int64_t end, bool bypassesCache = false);

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_HOST_REDUCE_H
