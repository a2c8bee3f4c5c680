//===- EdgeNumbers.cpp - Numbers at which arithmetic goes wrong -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/EdgeNumbers.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace zero;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Integer arithmetic on its bits overflows.
static const double kLargestNaN = llvm::bit_cast<double>(INT64_MAX);

EdgeNumbers::EdgeNumbers(const Format &format) : format(format) {
  double unit = std::ldexp(1, 1 - format.precision); // in the last place of 1
  double normal = std::ldexp(1, format.minExponent);
  edges = {0,
           1,
           1 + unit,
           2 - unit,
           3,
           normal,
           normal - format.getTiny(),
           format.getTiny(),
           3 * format.getTiny(),
           format.largest,
           format.largest / 2,
           std::sqrt(format.largest),
           std::sqrt(normal),
           kInfinity};
  // Halfway between two numbers of a narrower type, the lower even and odd, and
  // next to it. Beyond the largest number of a narrower type.
  for (int precision : {8, 11, 24}) {
    double half = std::ldexp(1, -precision);
    if (precision < format.precision)
      for (double tie : {1 + half, 1 + 3 * half})
        edges.insert(edges.end(), {tie, tie - 2 * unit, tie + 2 * unit});
  }
  for (double large : {65504.0, 65520.0, 0x1.fffffep127, 0x1.ffffffp127})
    edges.push_back(large);
  for (double &edge : edges)
    edge = roundTo(format, edge);
  for (size_t i = 0, count = edges.size(); i < count; ++i)
    edges.push_back(-edges[i]);
  // These two are tested for.
  for (int i = 0; i < 4; ++i)
    for (double found : {kLargestNaN, -kInfinity})
      edges.push_back(found);
}

double EdgeNumbers::draw(std::mt19937 &random, Mixture mixture) const {
  unsigned drawn = random() % 8;
  if (drawn < mixture.edges)
    return edges[random() % edges.size()];
  if (drawn < mixture.edges + mixture.zeros)
    return 0;
  if (random() % 2)
    return random() % 5;
  double fraction = std::ldexp(double(random()), -32) - 0.5;
  return roundTo(format, std::ldexp(fraction, int(random() % 16) - 8));
}

double zero::readNumber(Type type, const void *memory) {
  if (type.isF64()) {
    double value;
    std::memcpy(&value, memory, sizeof(value));
    return value;
  }
  if (type.isF32()) {
    float value;
    std::memcpy(&value, memory, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, memory, sizeof(bits));
  llvm::APFloat value(cast<FloatType>(type).getFloatSemantics(),
                      llvm::APInt(16, bits));
  return value.convertToDouble();
}

void zero::writeNumber(Type type, double value, void *memory) {
  if (type.isF64()) {
    std::memcpy(memory, &value, sizeof(value));
    return;
  }
  if (type.isF32()) {
    float narrow = value;
    std::memcpy(memory, &narrow, sizeof(narrow));
    return;
  }
  llvm::APFloat number(value);
  bool isInexact = false;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &isInexact);
  uint16_t bits = number.bitcastToAPInt().getZExtValue();
  std::memcpy(memory, &bits, sizeof(bits));
}

bool zero::areSame(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         llvm::bit_cast<int64_t>(a) == llvm::bit_cast<int64_t>(b);
}
