//===- Number.cpp - Rounding to a float type ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Number.h"

#include <cmath>
#include <limits>

using namespace zero;

static const Format kF16 = {11, -14, 65504.0};
static const Format kBF16 = {8, -126, 0x1.FEp127};
const Format zero::kF32 = {24, -126, std::numeric_limits<float>::max()};
const Format zero::kF64 = {53, -1022, std::numeric_limits<double>::max()};

double Format::getUnitRoundoff() const { return std::ldexp(1.0, -precision); }

double Format::getTiny() const {
  return std::ldexp(1.0, minExponent - precision + 1);
}

const Format *zero::getFormat(mlir::Type type) {
  if (type.isF16())
    return &kF16;
  if (type.isBF16())
    return &kBF16;
  if (type.isF32())
    return &kF32;
  return type.isF64() ? &kF64 : nullptr;
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
