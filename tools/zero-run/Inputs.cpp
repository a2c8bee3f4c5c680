//===- Inputs.cpp - Initial values and gradients of a run -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Inputs.h"

#include "tools/zero-run/Floats.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

using namespace zero;

/// Divisible by 1, 2, 3, 4, 6, 7, 8: any usual number of contributions.
static constexpr int64_t kListLength = 336;

template <typename... Keys> static std::mt19937_64 makeGenerator(Keys... keys) {
  std::seed_seq sequence{static_cast<uint32_t>(keys)...};
  return std::mt19937_64(sequence);
}

namespace {
/// The numbers of libstdc++'s std::normal_distribution, which takes a logarithm
/// of the generator's range for each: Marsaglia's polar method.
class NormalNumbers {
public:
  double operator()(std::mt19937_64 &generator) {
    if (std::exchange(hasSaved, false))
      return saved;
    double x, y, square;
    do {
      x = 2 * getUniform(generator) - 1;
      y = 2 * getUniform(generator) - 1;
      square = x * x + y * y;
    } while (square > 1 || square == 0);
    double factor = std::sqrt(-2 * std::log(square) / square);
    saved = x * factor;
    hasSaved = true;
    return y * factor;
  }

private:
  static double getUniform(std::mt19937_64 &generator) {
    double number = static_cast<double>(generator()) * 0x1p-64;
    return number < 1 ? number : std::nextafter(1.0, 0.0);
  }

  double saved = 0;
  bool hasSaved = false;
};
} // namespace

std::vector<double> Inputs::getInitial(size_t index,
                                       const ParameterInfo &info) const {
  std::mt19937_64 generator = makeGenerator(seed, seed >> 32, 1, index);
  // Multiples of 1/64 below 2 in magnitude: 7 bits, exact in bf16.
  std::uniform_int_distribution<int> distribution(-127, 127);
  std::vector<double> values(info.elements);
  for (double &value : values)
    value = distribution(generator) / 64.0;
  return values;
}

double Inputs::getShare(size_t index, int64_t step, int64_t share,
                        int64_t shares) const {
  std::mt19937_64 generator = makeGenerator(seed, seed >> 32, 4, index, step);
  std::uniform_int_distribution<int> distribution(0, 99);
  double sum = 0;
  for (int64_t k = 0; k < kListLength; ++k) {
    int number = distribution(generator) + (k == 0);
    if (k * shares / kListLength == share)
      sum += number;
  }
  return sum;
}

bool Inputs::isBegunAsLast(int64_t step, int64_t backward) const {
  return makeGenerator(seed, seed >> 32, 5, step, backward)() & 1;
}

bool Inputs::isAbsent(size_t index, int64_t step, int64_t rank,
                      int64_t backward) const {
  return makeGenerator(seed, seed >> 32, 6, index, step)() % 3 == 0 ||
         makeGenerator(seed, seed >> 32, 7, index, step, rank, backward)() & 1;
}

std::vector<double> Inputs::getGradient(size_t index, const ParameterInfo &info,
                                        int64_t step, int64_t rank,
                                        int64_t ranks, int64_t backward,
                                        int64_t backwards) const {
  std::vector<double> values(info.elements);
  if (kind == GradientKind::random) {
    std::mt19937_64 generator =
        makeGenerator(seed, seed >> 32, 2, index, step, rank, backward);
    NormalNumbers distribution;
    Format format = *getFormat(info.arrivalType);
    for (double &value : values)
      value = roundTo(format, distribution(generator));
    return values;
  }
  // Contribution c of n takes the numbers [c * 336 / n, (c + 1) * 336 / n).
  std::mt19937_64 generator = makeGenerator(seed, seed >> 32, 3, index, step);
  int64_t count = ranks * backwards;
  int64_t contribution = rank * backwards + backward;
  int64_t begin = contribution * kListLength / count;
  int64_t end = (contribution + 1) * kListLength / count;
  // Two bits a number: -1, 0, 0 or 1, the difference of the lower and the
  // upper.
  static constexpr int64_t kNumbers = 32; // of a draw
  static constexpr uint64_t kLower = 0x5555555555555555;
  auto getFirst = [](int64_t count) {
    count = std::clamp<int64_t>(count, 0, kNumbers);
    return count == kNumbers ? kLower
                             : kLower & ((uint64_t(1) << (2 * count)) - 1);
  };
  for (double &value : values)
    for (int64_t k = 0; k < kListLength; k += kNumbers) {
      uint64_t bits = generator();
      uint64_t taken = getFirst(end - k) & ~getFirst(begin - k);
      value += llvm::popcount(bits & taken) - llvm::popcount(bits >> 1 & taken);
    }
  return values;
}
