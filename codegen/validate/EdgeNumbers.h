//===- EdgeNumbers.h - Numbers at which arithmetic goes wrong ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_EDGENUMBERS_H
#define ZERO_CODEGEN_VALIDATE_EDGENUMBERS_H

#include "dialect/interpret/Number.h"

#include <random>

namespace zero {

/// Draws numbers of a float type. Half of them are edges: zeros, subnormals,
/// the largest numbers, infinities, nan, and numbers halfway between two of a
/// narrower type. The others are near 1.
class EdgeNumbers {
public:
  explicit EdgeNumbers(const Format &format);

  double draw(std::mt19937 &random) const;

private:
  const Format &format;
  std::vector<double> edges;
};

/// A number of |type|, f16, bf16, f32 or f64, in memory.
double readNumber(mlir::Type type, const void *memory);
/// |value| is a number of |type|.
void writeNumber(mlir::Type type, double value, void *memory);

/// Whether two numbers have the same bits; all nans are alike.
bool areSame(double a, double b);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_EDGENUMBERS_H
