//===- Calculator.h - Arithmetic, typed or with bounds ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_CALCULATOR_H
#define ZERO_DIALECT_INTERPRET_CALCULATOR_H

#include "dialect/interpret/Number.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace zero {

/// Evaluates one operation. |format| is the type of the result, and of the
/// operands unless stated otherwise. Conditions are 0 or 1. If rounding may
/// invert a condition, its bound is 1.
class Calculator {
public:
  explicit Calculator(Arithmetic arithmetic) : arithmetic(arithmetic) {}

  bool isTyped() const { return arithmetic == Arithmetic::Typed; }

  Number convert(const Format &from, const Format &to, Number x) const;
  Number add(const Format &format, Number a, Number b) const;
  Number sub(const Format &format, Number a, Number b) const;
  Number mul(const Format &format, Number a, Number b) const;
  Number div(const Format &format, Number a, Number b) const;
  Number fma(const Format &format, Number a, Number b, Number c) const;
  Number sqrt(const Format &format, Number a) const;

  // These never round.
  Number neg(Number a) const { return {-a.value, a.bound}; }
  Number abs(Number a) const;
  Number copySign(Number magnitude, Number sign) const;
  /// The smaller operand. |ignoreNaN|: a NaN operand is ignored; else a NaN
  /// operand is the result.
  Number minimum(Number a, Number b, bool ignoreNaN) const;
  Number maximum(Number a, Number b, bool ignoreNaN) const;
  Number compare(mlir::arith::CmpFPredicate predicate, Number a,
                 Number b) const;
  Number select(Number condition, Number a, Number b) const;

  /// A number from outside. Both arithmetics round it.
  Number read(const Format &format, double value) const {
    return {roundTo(format, value), 0};
  }

  /// Bounds the error of adding |addends| numbers of |format| in any order, as
  /// a factor of the sum of their magnitudes: gamma(addends - 1).
  static double getSumFactor(const Format &format, int64_t addends);
  /// The same for addends whose magnitudes have the sum |magnitude|.
  static double getSumBound(const Format &format, int64_t addends,
                            double magnitude);

private:
  /// |value|, computed in double. The bounds of the operands put it at most
  /// |inherited| away from the number that the typed operation rounds.
  static Number finish(const Format &format, double value, double inherited);

  Arithmetic arithmetic;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_CALCULATOR_H
