//===- Precision.h - The numbers that a type holds --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_PRECISION_H
#define ZERO_PASSES_PROVE_PRECISION_H

#include "mlir/IR/Types.h"

#include <string>

namespace zero::prove {

/// The numbers that a float type can hold, or that each of several types can.
struct Precision {
  unsigned mantissa = ~0u; // bits, the hidden one included
  unsigned exponent = ~0u; // bits

  /// Everything.
  Precision() = default;
  explicit Precision(mlir::Type type);
  static Precision f32();
  static Precision f64();

  Precision limitedBy(Precision other) const;
  /// The type that holds the numbers of both.
  Precision widenedTo(Precision other) const;
  /// Whether this holds every number that |other| holds.
  bool holds(Precision other) const {
    return mantissa >= other.mantissa && exponent >= other.exponent;
  }
  bool isExact() const { return *this == Precision(); }
  bool operator==(const Precision &other) const {
    return mantissa == other.mantissa && exponent == other.exponent;
  }
  uint64_t getKey() const { return uint64_t(mantissa) << 32 | exponent; }
  /// "f32", "8 bits of bf16" ...
  std::string describe() const;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_PRECISION_H
