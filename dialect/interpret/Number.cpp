//===- Number.cpp - Rounding to a float type ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Number.h"

#include "mlir/IR/BuiltinTypes.h"

#include <cmath>
#include <limits>

using namespace zero;

/// The format with exponents of |bits| bits, as IEEE 754 defines it.
static Format makeFormat(int precision, int bits) {
  int maxExponent = (1 << (bits - 1)) - 1;
  double largest = std::ldexp(2 - std::ldexp(1.0, 1 - precision), maxExponent);
  return {precision, 1 - maxExponent, largest};
}

const Format zero::kF32 = makeFormat(24, 8);
const Format zero::kF64 = makeFormat(53, 11);

double Format::getUnitRoundoff() const { return std::ldexp(1.0, -precision); }

double Format::getTiny() const {
  return std::ldexp(1.0, minExponent - precision + 1);
}

const Format *zero::getFormat(mlir::Type type) {
#define ZERO_STORAGE_TYPE(TYPE, NAME, TORCH, PRECISION, EXPONENT)              \
  if (mlir::isa<mlir::TYPE>(type)) {                                           \
    static const Format format = makeFormat(PRECISION, EXPONENT);              \
    return &format;                                                            \
  }
#include "dialect/zero/StorageTypes.def"
  return nullptr;
}

double zero::roundTo(const Format &format, double value) {
  if (std::isnan(value))
    return std::numeric_limits<double>::quiet_NaN();
  if (format.precision == kF64.precision || std::isinf(value) || value == 0)
    return value;
  if (format.precision == kF32.precision)
    return static_cast<float>(value);
  // The value is counted in units in the last place. Scaling by a power of two
  // is exact.
  int exponent = std::max(std::ilogb(value), format.minExponent);
  int unit = exponent - format.precision + 1;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  if (std::fabs(rounded) > format.largest)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}
