//===- Number.h - Arithmetic in f64 with bounds, or typed -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_REFERENCE_NUMBER_H
#define ZERO_DIALECT_REFERENCE_NUMBER_H

#include "mlir/IR/BuiltinTypes.h"

namespace zero {

enum class Arithmetic {
  /// Everything in f64, and beside each number a bound on how far the same
  /// computation in the declared types can be from it.
  F64,
  /// Each result rounded to its declared type.
  Typed
};

struct Number {
  double value = 0;
  double bound = 0; // 0 in typed arithmetic
};

/// The largest relative error of one rounding to |type|: 2^-24 for f32.
double getUnitRoundoff(mlir::Type type);

/// |value| rounded to |type|, to nearest even.
double roundTo(double value, mlir::Type type);

/// One operation each, with a result of type |type|. In F64 arithmetic the
/// bound is what the operands' bounds grow to, plus one rounding.
class Calculator {
public:
  explicit Calculator(Arithmetic arithmetic) : arithmetic(arithmetic) {}

  bool isTyped() const { return arithmetic == Arithmetic::Typed; }

  Number add(Number a, Number b, mlir::Type type) const;
  Number sub(Number a, Number b, mlir::Type type) const;
  Number mul(Number a, Number b, mlir::Type type) const;
  Number div(Number a, Number b, mlir::Type type) const;
  Number fma(Number a, Number b, Number c, mlir::Type type) const;
  Number sqrt(Number a, mlir::Type type) const;
  /// A rounding and nothing else. Widening is exact.
  Number convert(Number a, mlir::Type from, mlir::Type to) const;

private:
  /// |exact| with a bound of |propagated| from the operands.
  Number finish(double exact, double propagated, mlir::Type type) const;

  Arithmetic arithmetic;
};

} // namespace zero

#endif // ZERO_DIALECT_REFERENCE_NUMBER_H
