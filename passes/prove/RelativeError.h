//===- RelativeError.h - How rounding errors grow ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number over the reals is computed with a relative error. Each operation
// adds one, and some multiply the errors of their operands: a square has twice
// the error, and a sum of which terms cancel has as many times more as its
// addends are larger. A few operations more are no difference between two
// steps. Errors that are multiplied again and again are one, although both
// steps are equal over the reals.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_RELATIVEERROR_H
#define ZERO_PASSES_PROVE_RELATIVEERROR_H

#include "passes/prove/Magnitudes.h"
#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// Sets a bound of first order of the relative error of |result|, which |op|
/// makes of |operands| and which loses |lostBits| since terms cancel.
void computeError(mlir::Operation &op, llvm::ArrayRef<Number> operands,
                  double lostBits, Number &result);

/// The error of a product of scales, or of a clip coefficient, that a step of
/// the zero dialect computes in f64. A lowered one has several roundings.
constexpr double kErrorOfScale = 4.0 / (int64_t(1) << 53);

/// The error of |number|, a sum that loses |bits| binary digits.
void loseDigits(Number &number, double bits);

/// Counts the rounding of |number|, which is converted to |type|.
void countConversion(Number &number, mlir::Type type);

/// Whether rounding errors of |number|, which is computed in |type|, grew
/// far beyond those of |expected|.
std::optional<Beyond> findGrowth(const Number &number, const Number &expected,
                                 Precision type);

/// Whether the counter |number| was rounded more often than |expected|. The
/// next step may compare it.
std::optional<Beyond> findGrowthOfCounter(const Number &number,
                                          const Number &expected);

/// The type in which errors of the scalar |a| begin: sums are of elements.
Precision getScalarType(Expr a, const StepSemantics &semantics);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_RELATIVEERROR_H
