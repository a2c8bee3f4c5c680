//===- Magnitudes.h - How far numbers are from their sources ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof computes over the reals, where a number that is multiplied by 1e300
// and divided again is what it was. In a float type it overflows in between. So
// is one to which a large number is added and from which this is taken away
// again. In a float type its digits are lost.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_MAGNITUDES_H
#define ZERO_PASSES_PROVE_MAGNITUDES_H

#include "passes/prove/Algebra.h"
#include "passes/prove/Precision.h"

#include <array>
#include <optional>
#include <string>
#include <tuple>

namespace zero::prove {

/// The multiples and powers of a source, of all numbers in one range of
/// exponents.
struct Magnitude {
  int least = 0; // of the multiples, as powers of 2
  int most = 0;
  int degree = 1;

  Magnitude joinedWith(const Magnitude &other) const;
  auto getKey() const { return std::tie(least, most, degree); }
};

/// Something that numbers go through on their way, and numbers that show it.
struct Beyond {
  std::string text;
  std::string example;
};

/// The ranges of exponents: f16, that of f32 and bf16, and f64.
inline constexpr unsigned kNumRanges = 3;

/// Magnitudes by the range of the type that they were computed in.
class Magnitudes {
public:
  Magnitudes() = default;
  /// Those of the terms of |a|, computed in |type|, that are as large as
  /// elements or sums over them, or of the other terms.
  Magnitudes(Expr a, Precision type, bool isOfElements);

  Magnitudes joinedWith(const Magnitudes &other) const;
  /// The same, of a number that lost |bits| binary digits more.
  Magnitudes losing(int bits) const;
  /// The same, of a number that lost none.
  Magnitudes withoutLoss() const;
  bool hasLost() const { return lostBits > 0; }
  /// A range in which numbers are farther from their source than in |expected|
  /// there, or in a smaller range, or in any range if they are not as large as
  /// elements: a step computes scalars in f64. Two steps may take the same
  /// product in another order, so that some powers of 2 more are no difference.
  std::optional<Beyond> findBeyond(const Magnitudes &expected,
                                   bool isOfElements) const;
  bool operator==(const Magnitudes &other) const {
    return getKey() == other.getKey();
  }
  bool operator<(const Magnitudes &other) const {
    return getKey() < other.getKey();
  }

private:
  std::pair<std::array<std::tuple<int, int, int>, kNumRanges>, int>
  getKey() const;

  std::array<Magnitude, kNumRanges> ranges = {};
  int lostBits = 0; // where terms cancelled, on the way
};

/// More binary digits than numbers have: those of a term that is gone.
inline constexpr int kAllBits = 1 << 12;

/// The binary digits that |sum| of |addends| loses since multiples of a term
/// cancel: (x + 2^20 y) - (2^20 - 1) y loses 20. Of a term that is gone all are
/// lost.
double getLostBits(Algebra &algebra, llvm::ArrayRef<Expr> addends, Expr sum);

/// What becomes of a number that loses |bits| binary digits, where it may lose
/// |expected|.
std::string showLost(int bits, int expected);

/// Whether |a| is as large as a sum over elements in it, or as its inverse. A
/// root of the sum is not.
bool hasSizeOfSum(Expr a);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_MAGNITUDES_H
