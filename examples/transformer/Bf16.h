//===- Bf16.h - Rounding to bf16 and back -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_BF16_H
#define ZERO_EXAMPLES_TRANSFORMER_BF16_H

#include <cstdint>
#include <cstring>

namespace transformer {

/// Rounds to nearest, ties to even; a NaN stays a NaN.
inline uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value != value)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float fromBf16(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_BF16_H
