//===- numeric.h - Element types and their conversions ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Widening is exact. Narrowing rounds once, to nearest even. Conversions use
// integer operations, so that the bits do not depend on the machine.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_NUMERIC_H
#define ZERO_RT_CORE_NUMERIC_H

#include "zero_rt/abi.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace zero_rt {

template <typename To, typename From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

float floatFromF16(uint16_t bits);
uint16_t f16FromDouble(double value);
uint16_t bf16FromDouble(double value);

inline float floatFromBF16(uint16_t bits) {
  return bitCast<float>(uint32_t(bits) << 16);
}

inline uint16_t bf16FromFloat(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return 0x7FC0;
  return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
}

/// As f16FromDouble. Normal numbers are rounded with integers.
inline uint16_t f16FromFloat(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  constexpr uint32_t smallestNormal = 0x38800000, largest = 0x477FE000;
  if (magnitude < smallestNormal || magnitude > largest)
    return f16FromDouble(value);
  uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
  return uint16_t((bits >> 16 & 0x8000) | ((rounded - (112u << 23)) >> 13));
}

// One struct per element type: its representation in memory, the type of its
// sums, and the patterns of infinity and of poisoned memory (a signalling NaN).

struct F16 {
  using Storage = uint16_t;
  using Sum = float;
  static constexpr uint16_t infinity = 0x7C00;
  static constexpr uint16_t poison = 0x7D00;
  static float load(uint16_t bits) { return floatFromF16(bits); }
  static uint16_t store(float value) { return f16FromFloat(value); }
  static uint16_t fromDouble(double value) { return f16FromDouble(value); }
};

struct BF16 {
  using Storage = uint16_t;
  using Sum = float;
  static constexpr uint16_t infinity = 0x7F80;
  static constexpr uint16_t poison = 0x7FA0;
  static float load(uint16_t bits) { return floatFromBF16(bits); }
  static uint16_t store(float value) { return bf16FromFloat(value); }
  static uint16_t fromDouble(double value) { return bf16FromDouble(value); }
};

struct F32 {
  using Storage = float;
  using Sum = float;
  static constexpr uint32_t infinity = 0x7F800000;
  static constexpr uint32_t poison = 0x7FA0DEAD;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
  static float fromDouble(double value) { return float(value); }
};

struct F64 {
  using Storage = double;
  using Sum = double;
  static constexpr uint64_t infinity = 0x7FF0000000000000;
  static constexpr uint64_t poison = 0x7FF4DEADDEADDEAD;
  static double load(double value) { return value; }
  static double store(double value) { return value; }
  static double fromDouble(double value) { return value; }
};

inline bool isDtype(int64_t dtype) {
  return dtype >= ZERO_RT_F16 && dtype <= ZERO_RT_F64;
}

/// Whether an activation may have |dtype|. Activations are moved and never
/// computed with.
inline bool isActivationDtype(int64_t dtype) {
  return dtype >= ZERO_RT_F16 && dtype <= ZERO_RT_I64;
}

/// Calls |body| with an object of the struct for |dtype|. Throws
/// std::invalid_argument for a type that no one computes with: libraries and
/// files are checked where they are opened.
template <typename Body> auto dispatch(int64_t dtype, Body &&body) {
  switch (dtype) {
  case ZERO_RT_F16:
    return body(F16());
  case ZERO_RT_BF16:
    return body(BF16());
  case ZERO_RT_F32:
    return body(F32());
  case ZERO_RT_F64:
    return body(F64());
  }
  throw std::invalid_argument("not a type of numbers to compute with");
}

/// Whether |wide| holds every number of |narrow|.
inline bool holdsEveryNumber(int64_t wide, int64_t narrow) {
  return wide == narrow || (wide > narrow && wide >= ZERO_RT_F32);
}

/// Bytes of one element, also of an activation; 0 for another number.
int64_t elementSize(int64_t dtype);

/// The name of |dtype|, such as "bf16"; "unknown" for another number.
const char *dtypeName(int64_t dtype);

/// Converts |elements| elements; equal types are copied bit for bit.
void convert(int64_t dstDtype, void *dst, int64_t srcDtype, const void *src,
             int64_t elements);

/// The bits of |value| as an element of |dtype|.
uint64_t bitsOf(int64_t dtype, double value);

/// The signalling pattern of |dtype|.
uint64_t poisonOf(int64_t dtype);

/// The address of element |index|.
inline void *elementAt(void *data, int64_t dtype, int64_t index) {
  return static_cast<char *>(data) + index * elementSize(dtype);
}
inline const void *elementAt(const void *data, int64_t dtype, int64_t index) {
  return static_cast<const char *>(data) + index * elementSize(dtype);
}

} // namespace zero_rt

#endif // ZERO_RT_CORE_NUMERIC_H
