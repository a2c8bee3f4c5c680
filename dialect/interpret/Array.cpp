//===- Array.cpp - Arrays of numbers, and sums in a fixed order -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/Array.h"

#include <cmath>

using namespace mlir;
using namespace zero;

static constexpr size_t kLanes = 32;
static constexpr size_t kBlock = 4096;

Array Array::slice(Range range) const {
  Array part;
  part.format = format;
  part.elements.assign(elements.begin() + range.begin,
                       elements.begin() + range.end);
  return part;
}

std::vector<double> Array::getValues() const {
  std::vector<double> values;
  for (const Number &number : elements)
    values.push_back(number.value);
  return values;
}

Array zero::convert(const Calculator &calculator, const Format &format,
                    const Array &array) {
  Array result(format, array.size());
  for (int64_t i = 0; i < array.size(); ++i)
    result[i] = calculator.convert(*array.format, format, array[i]);
  return result;
}

Array zero::scale(const Calculator &calculator, const Array &array,
                  Number factor) {
  Number rounded = calculator.convert(kF64, *array.format, factor);
  Array result(*array.format, array.size());
  for (int64_t i = 0; i < array.size(); ++i)
    result[i] = calculator.mul(*array.format, array[i], rounded);
  return result;
}

Array zero::add(const Calculator &calculator, const Array &a, const Array &b) {
  Array result(*a.format, a.size());
  for (int64_t i = 0; i < a.size(); ++i)
    result[i] = calculator.add(*a.format, a[i], b[i]);
  return result;
}

Array zero::sumInOrder(const Calculator &calculator, const Format &format,
                       ArrayRef<const Array *> addends) {
  // Begins with the first addend and not with zero, which would lose a -0.
  Array sum = *addends.front();
  const Format &wide = kF32.contains(format) ? kF32 : format;
  for (const Array *addend : addends.drop_front())
    for (int64_t i = 0; i < sum.size(); ++i)
      sum[i] = calculator.add(wide, sum[i], (*addend)[i]);
  sum.format = &wide;
  return convert(calculator, format, sum);
}

PerRank zero::travel(const Calculator &calculator, const PerRank &addends,
                     const Format *reduceDtype) {
  PerRank arrived;
  for (const Array &addend : addends)
    arrived.push_back(reduceDtype && addend.format
                          ? convert(calculator, *reduceDtype, addend)
                          : addend);
  return arrived;
}

/// The sum of |terms|, at most one block, and its lanes folded in halves.
static double sumBlock(ArrayRef<double> terms) {
  double lanes[kLanes] = {};
  for (size_t i = 0; i < terms.size(); ++i)
    lanes[i % kLanes] += terms[i];
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  return lanes[0];
}

/// Sums of blocks are terms again.
static double sumTree(ArrayRef<double> terms) {
  if (terms.size() <= kBlock)
    return sumBlock(terms);
  std::vector<double> sums;
  for (size_t begin = 0; begin < terms.size(); begin += kBlock)
    sums.push_back(
        sumBlock(terms.slice(begin, std::min(kBlock, terms.size() - begin))));
  return sumTree(sums);
}

Number zero::sumInLanes(const Calculator &calculator, ArrayRef<Number> terms) {
  Number sum;
  sum.value = sumTree(llvm::map_to_vector(
      terms, [](const Number &term) { return term.value; }));
  if (calculator.isTyped())
    return sum;
  double magnitude = 0;
  for (const Number &term : terms) {
    magnitude += std::fabs(term.value) + term.bound;
    sum.bound += term.bound;
  }
  sum.bound += Calculator::getSumBound(kF64, terms.size(), magnitude);
  return sum;
}

Number zero::sumSquares(const Calculator &calculator, const Array &array) {
  std::vector<Number> squares;
  squares.reserve(array.size());
  for (const Number &number : array.elements) {
    Number wide = calculator.convert(*array.format, kF64, number);
    squares.push_back(calculator.mul(kF64, wide, wide));
  }
  return sumInLanes(calculator, squares);
}
