//===- timeout.h - The timeouts that callers give ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_TIMEOUT_H
#define ZERO_RT_CORE_TIMEOUT_H

#include <algorithm>
#include <cstdint>

namespace zero_rt {

/// The timeout for |givenMs| of a caller, which is at least 0: a minute for 0,
/// and at most a year, because deadlines are counted in nanoseconds.
inline int64_t getTimeoutMs(int64_t givenMs) {
  return givenMs ? std::min(givenMs, int64_t(365) * 24 * 3600 * 1000) : 60000;
}

} // namespace zero_rt

#endif // ZERO_RT_CORE_TIMEOUT_H
