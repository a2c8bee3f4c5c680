//===- Array.h - Arrays of numbers, and sums in a fixed order ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_ARRAY_H
#define ZERO_DIALECT_INTERPRET_ARRAY_H

#include "dialect/interpret/Calculator.h"

namespace zero {

/// Elements [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

/// Slice |index| of |count| of |elements|.
inline Range getSlice(int64_t elements, int64_t index, int64_t count) {
  return {index * elements / count, (index + 1) * elements / count};
}

/// The elements of a value that one rank holds, in one declared type.
struct Array {
  const Format *format = nullptr;
  std::vector<Number> elements;

  Array() = default;
  Array(const Format &format, int64_t size, Number fill = {})
      : format(&format), elements(size, fill) {}
  static Array scalar(Number number) { return Array(kF64, 1, number); }

  int64_t size() const { return elements.size(); }
  Number &operator[](int64_t i) { return elements[i]; }
  const Number &operator[](int64_t i) const { return elements[i]; }
  Array slice(Range range) const;
  /// The values, without their bounds.
  std::vector<double> getValues() const;
};

/// One array per rank.
using PerRank = std::vector<Array>;

/// |array| in another type.
Array convert(const Calculator &calculator, const Format &format,
              const Array &array);

/// array * factor: the factor, an f64, is rounded to the array's type first.
Array scale(const Calculator &calculator, const Array &array, Number factor);

Array add(const Calculator &calculator, const Array &a, const Array &b);

/// The element-wise sum of |addends| in order, as collectives compute it. It is
/// taken in |format|; for a format of 16 bits it is taken in f32 and rounded
/// once.
Array sumInOrder(const Calculator &calculator, const Format &format,
                 llvm::ArrayRef<const Array *> addends);

/// |addends| after they traveled as |reduceDtype|. Null: they do not change.
PerRank travel(const Calculator &calculator, const PerRank &addends,
               const Format *reduceDtype);

/// The sum of f64 |terms| in the order of all kernels: term i to lane i mod 32,
/// blocks of 4096 terms, lanes folded in halves, sums of blocks added in the
/// same way.
Number sumInLanes(const Calculator &calculator, llvm::ArrayRef<Number> terms);

/// The sum of the squares of |array|, in f64.
Number sumSquares(const Calculator &calculator, const Array &array);

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_ARRAY_H
