//===- Compression.cpp - What LLVM would call of zlib and zstd ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM can compress sections of debug information, which no step has. So
// libzero_compiler has neither library within it, and needs none: these
// functions are in their place, and a call is an error of the compile.
//
//===----------------------------------------------------------------------===//

#include "llvm/Support/ErrorHandling.h"

#include <cstddef>
#include <cstdint>

#define ZERO_NO_COMPRESSION(function)                                          \
  void function() {                                                            \
    llvm::report_fatal_error("LLVM called " #function                          \
                             ", which this library does not have");            \
  }

// NOLINTBEGIN(readability-identifier-naming): the names are theirs.
extern "C" {
ZERO_NO_COMPRESSION(ZSTD_CCtx_setParameter)
ZERO_NO_COMPRESSION(ZSTD_compress2)
ZERO_NO_COMPRESSION(ZSTD_compressBound)
ZERO_NO_COMPRESSION(ZSTD_createCCtx)
ZERO_NO_COMPRESSION(ZSTD_decompress)
ZERO_NO_COMPRESSION(ZSTD_freeCCtx)
ZERO_NO_COMPRESSION(ZSTD_getErrorName)
ZERO_NO_COMPRESSION(ZSTD_isError)
ZERO_NO_COMPRESSION(compress2)
ZERO_NO_COMPRESSION(compressBound)
ZERO_NO_COMPRESSION(uncompress)

/// A checksum, which LLVM takes of other things, too.
unsigned long crc32(unsigned long sum, const uint8_t *data, unsigned size) {
  uint32_t inverse = ~static_cast<uint32_t>(sum);
  for (unsigned i = 0; i < size; ++i) {
    inverse ^= data[i];
    for (int bit = 0; bit < 8; ++bit)
      inverse = inverse >> 1 ^ (inverse & 1 ? 0xEDB88320U : 0);
  }
  return static_cast<uint32_t>(~inverse);
}
}
// NOLINTEND(readability-identifier-naming)
