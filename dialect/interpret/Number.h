//===- Number.h - Numbers with error bounds ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_NUMBER_H
#define ZERO_DIALECT_INTERPRET_NUMBER_H

#include "mlir/IR/BuiltinTypes.h"

namespace zero {

/// F64: no rounding to declared types; each number carries a bound instead.
/// Typed: each number is rounded to its declared type.
enum class Arithmetic { F64, Typed };

/// A number and a bound. In f64 arithmetic a computation in the declared types
/// differs from the number by at most the bound. In typed arithmetic the bound
/// is zero.
struct Number {
  double value = 0;
  double bound = 0;
};

/// The rounding of a float type.
struct Format {
  int precision;   // bits of the significand, the leading one included
  int minExponent; // of the smallest normal number
  double largest;

  /// Half a unit in the last place, relative: 2^-24 for f32.
  double getUnitRoundoff() const;
  /// The smallest subnormal.
  double getTiny() const;
  /// Whether every number of |other| is one of this format.
  bool contains(const Format &other) const {
    return precision >= other.precision && minExponent <= other.minExponent;
  }
};

/// The format of a storage type; null for another type.
const Format *getFormat(mlir::Type type);
extern const Format kF32;
extern const Format kF64;

/// |value| rounded once, to nearest even; a NaN becomes the quiet one.
double roundTo(const Format &format, double value);

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_NUMBER_H
