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

/// Of 8 numbers that are drawn, how many are edges and how many are 0. An edge
/// hides what others would show, and much shows only where most numbers are 0.
struct Mixture {
  unsigned edges, zeros;
};

/// Draws numbers of a float type. Edges are zeros, subnormals, the largest
/// numbers, infinities, nan, and numbers halfway between two of a narrower
/// type. Other numbers are near 1, or small counts.
class EdgeNumbers {
public:
  explicit EdgeNumbers(const Format &format);

  double draw(std::mt19937 &random, Mixture mixture) const;
  llvm::ArrayRef<double> getEdges() const { return edges; }

private:
  const Format &format;
  std::vector<double> edges;
};

/// A number of |type|, a storage type, in memory.
double readNumber(mlir::Type type, const void *memory);
/// |value| is a number of |type|.
void writeNumber(mlir::Type type, double value, void *memory);

/// Whether two numbers have the same bits; all nans are alike.
bool areSame(double a, double b);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_EDGENUMBERS_H
