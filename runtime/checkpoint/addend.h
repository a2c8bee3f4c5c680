//===- addend.h - One of the addends of a sum -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between two backward passes each rank may have a sum of its own gradients,
// and the sum of all ranks is taken later. Then a checkpoint has an addend of
// each rank. The addends of a value are counted in the order of the ranks that
// have them.
//
// A load on another number of ranks adds the addends of neighbours: of n ranks
// that have a sum, rank i takes those addends whose number, times n / their
// count, is i. So on as many ranks each takes its own, and on more ranks some
// take nothing.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_ADDEND_H
#define ZERO_RT_CHECKPOINT_ADDEND_H

#include <cstdint>
#include <string>
#include <string_view>

namespace zero_rt {

struct Addend {
  int64_t number = 0;
  int64_t count = 1; // 1: the whole sum

  bool isWhole() const { return count == 1; }
  /// "1/4"
  std::string text() const;
  /// Whether a rank that has |this| addend of a sum takes |stored|.
  bool takes(const Addend &stored) const;
  /// How many of |stored| addends a rank with |this| takes.
  int64_t countTaken(int64_t stored) const;
};

/// Reads the text of an addend. False if |text| is none.
bool readAddend(std::string_view text, Addend &out);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_ADDEND_H
