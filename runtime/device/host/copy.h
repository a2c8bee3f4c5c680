//===- copy.h - Copies of more than the cache holds -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stores around the cache save the read of the lines that are written. memcpy
// makes them, too, but from a size on that depends on the cache that the
// machine reports, and virtual machines report too much.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_HOST_COPY_H
#define ZERO_RT_DEVICE_HOST_COPY_H

#include <cstdint>
#include <cstring>
#include <emmintrin.h>

namespace zero_rt {

/// Results of at least this size are stored around the cache.
constexpr int64_t leastLargeBytes = int64_t(1) << 22;
/// The size of a store.
constexpr int64_t storeBytes = sizeof(__m128i);

/// Whether `storeAround` can begin at |dst|.
inline bool isStoreAligned(const void *dst) {
  return reinterpret_cast<uintptr_t>(dst) % storeBytes == 0;
}

/// Copies |bytes|, a multiple of storeBytes, around the cache. Other threads
/// may read the copy after _mm_sfence.
inline void storeAround(void *dst, const void *src, int64_t bytes) {
  auto *to = static_cast<__m128i *>(dst);
  auto *from = static_cast<const __m128i *>(src);
  for (int64_t i = 0; i < bytes / storeBytes; ++i)
    _mm_stream_si128(to + i, _mm_loadu_si128(from + i));
}

/// Copies |bytes| to |dst|, which does not overlap |src|.
inline void copyOnHost(void *dst, const void *src, int64_t bytes) {
  int64_t around = 0;
  if (bytes >= leastLargeBytes && isStoreAligned(dst)) {
    around = bytes / storeBytes * storeBytes;
    storeAround(dst, src, around);
    _mm_sfence();
  }
  if (bytes > around)
    std::memcpy(static_cast<char *>(dst) + around,
                static_cast<const char *>(src) + around,
                size_t(bytes - around));
}

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_HOST_COPY_H
