//===- numeric.cpp - Element types and their conversions ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/numeric.h"

#include <algorithm>
#include <cmath>

using namespace zero_rt;

float zero_rt::floatFromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1F;
  uint32_t fraction = bits & 0x3FF;
  if (exponent == 0x1F)
    return bitCast<float>(sign | 0x7F800000 | (fraction << 13));
  if (exponent != 0)
    return bitCast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  // A subnormal is a small integer times 2^-24, which f32 holds exactly.
  float magnitude = float(fraction) * 0x1p-24f;
  return bitCast<float>(sign | bitCast<uint32_t>(magnitude));
}

/// Rounds |value| once to a 16-bit format with the given numbers of exponent
/// and fraction bits. A conversion through f32 would round twice.
template <int exponentBits, int fractionBits>
static uint16_t narrow(double value) {
  constexpr int64_t infinity = ((int64_t(1) << exponentBits) - 1)
                               << fractionBits;
  constexpr int minExponent = 2 - (1 << (exponentBits - 1));
  if (std::isnan(value))
    return uint16_t(infinity | (int64_t(1) << (fractionBits - 1)));
  int64_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return uint16_t(sign);
  if (std::isinf(magnitude))
    return uint16_t(sign | infinity);

  int exponent;
  std::frexp(magnitude, &exponent);
  exponent -= 1; // magnitude is in [2^exponent, 2^(exponent + 1))
  int clamped = std::max(exponent, minExponent);
  // The magnitude in units in the last place. The scaling is exact.
  int64_t units =
      int64_t(std::nearbyint(std::ldexp(magnitude, fractionBits - clamped)));
  // A normal number has its leading bit in |units|, so the biased exponent is
  // added one too small; a carry out of the fraction lands where it belongs.
  int64_t biased = int64_t(clamped) - minExponent;
  int64_t bits = (biased << fractionBits) + units;
  return uint16_t(sign | std::min(bits, infinity));
}

uint16_t zero_rt::f16FromDouble(double value) { return narrow<5, 10>(value); }
uint16_t zero_rt::bf16FromDouble(double value) { return narrow<8, 7>(value); }

int64_t zero_rt::elementSize(int64_t dtype) {
  constexpr int64_t sizes[] = {
#define ZERO_RT_DTYPE(NAME, TEXT, BYTES) BYTES,
#include "zero_rt/dtypes.def"
  };
  return isActivationDtype(dtype) ? sizes[dtype] : 0;
}

const char *zero_rt::dtypeName(int64_t dtype) {
  static const char *const names[] = {
#define ZERO_RT_DTYPE(NAME, TEXT, BYTES) TEXT,
#include "zero_rt/dtypes.def"
  };
  return isActivationDtype(dtype) ? names[dtype] : "unknown";
}

// The tables above are in the order of the numbers.
static constexpr int kNumbers[] = {
#define ZERO_RT_DTYPE(NAME, TEXT, BYTES) ZERO_RT_##NAME,
#include "zero_rt/dtypes.def"
};
static_assert(kNumbers[ZERO_RT_F16] == ZERO_RT_F16 &&
                  kNumbers[ZERO_RT_BF16] == ZERO_RT_BF16 &&
                  kNumbers[ZERO_RT_F32] == ZERO_RT_F32 &&
                  kNumbers[ZERO_RT_F64] == ZERO_RT_F64 &&
                  kNumbers[ZERO_RT_I8] == ZERO_RT_I8 &&
                  kNumbers[ZERO_RT_I32] == ZERO_RT_I32 &&
                  kNumbers[ZERO_RT_I64] == ZERO_RT_I64,
              "dtypes.def has the order of abi.h");

void zero_rt::convert(int64_t dstDtype, void *dst, int64_t srcDtype,
                      const void *src, int64_t elements) {
  if (elements == 0)
    return;
  if (dstDtype == srcDtype) {
    std::memcpy(dst, src, size_t(elements * elementSize(dstDtype)));
    return;
  }
  dispatch(dstDtype, [&](auto dstType) {
    dispatch(srcDtype, [&](auto srcType) {
      using Dst = decltype(dstType);
      using Src = decltype(srcType);
      auto *to = static_cast<typename Dst::Storage *>(dst);
      auto *from = static_cast<const typename Src::Storage *>(src);
      for (int64_t i = 0; i < elements; ++i)
        to[i] = Dst::fromDouble(double(Src::load(from[i])));
    });
  });
}

uint64_t zero_rt::bitsOf(int64_t dtype, double value) {
  return dispatch(dtype, [&](auto type) {
    auto element = decltype(type)::fromDouble(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &element, sizeof(element));
    return bits;
  });
}

uint64_t zero_rt::poisonOf(int64_t dtype) {
  return dispatch(dtype,
                  [](auto type) { return uint64_t(decltype(type)::poison); });
}
