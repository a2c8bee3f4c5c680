//===- Precision.cpp - The numbers that a type holds ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Precision.h"

#include "dialect/zero/StorageTypes.h"

#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>

using namespace mlir;
using namespace zero::prove;

Precision::Precision(Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  if (!floatType)
    return;
  mantissa = floatType.getFPMantissaWidth();
  exponent = floatType.getWidth() - mantissa;
}

Precision Precision::f32() {
  Precision precision;
  precision.mantissa = 24;
  precision.exponent = 8;
  return precision;
}

Precision Precision::f64() {
  Precision precision;
  precision.mantissa = 53;
  precision.exponent = 11;
  return precision;
}

Precision Precision::limitedBy(Precision other) const {
  Precision least;
  least.mantissa = std::min(mantissa, other.mantissa);
  least.exponent = std::min(exponent, other.exponent);
  return least;
}

Precision Precision::widenedTo(Precision other) const {
  Precision most;
  most.mantissa = std::max(mantissa, other.mantissa);
  most.exponent = std::max(exponent, other.exponent);
  return most;
}

std::string Precision::describe() const {
  if (isExact())
    return "exact";
  StringRef name = getStorageTypeName(mantissa);
  // What two types hold is no type if each is narrower in one way.
  if (exponent < getExponentBits(mantissa))
    return (name + " within the range of " + getStorageTypeOfRange(exponent))
        .str();
  return name.str();
}
