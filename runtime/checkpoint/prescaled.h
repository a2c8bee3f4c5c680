//===- prescaled.h - The factor that gradients arrive with ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Callers may divide a loss by the number of ranks or of backward passes. Then
// the sum of some gradients that a checkpoint has within a step is divided by
// the numbers of the job that saved it. A job on another number of ranks makes
// another number of backward passes, so that as many batches make the step, and
// multiplies the sum by the quotient of the factors.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_PRESCALED_H
#define ZERO_RT_CHECKPOINT_PRESCALED_H

#include "zero_rt/library.h"

#include <string>
#include <string_view>

namespace zero_rt {

struct Prescaled {
  int64_t numerator = 1; // both 0: not known
  int64_t denominator = 1;
  int64_t passesPower = 0;
  int64_t tokensPower = 0;

  bool operator==(const Prescaled &other) const {
    return numerator == other.numerator && denominator == other.denominator &&
           hasPowersOf(other);
  }
  bool hasPowersOf(const Prescaled &other) const {
    return passesPower == other.passesPower && tokensPower == other.tokensPower;
  }
  bool isOne() const { return *this == Prescaled(); }
  /// "1/4,-1,0": numerator, denominator, and powers of passes and tokens.
  std::string text() const;
};

Prescaled prescaledOf(const zero_rt_accumulator_row &row);

/// Reads the text of a factor. False if |text| is none.
bool readPrescaled(std::string_view text, Prescaled &out);

/// A quotient, each part of which is a product of whole numbers.
struct Quotient {
  double numerator = 1;
  double denominator = 1;

  bool isOne() const { return numerator == denominator; }
};

/// |mine| / |stored|, which have the same powers, if the numbers of backward
/// passes of a step are as |passes|. False if one of them is not known.
bool divide(const Prescaled &mine, const Prescaled &stored, Quotient passes,
            Quotient &out);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_PRESCALED_H
