//===- addend.h - One of the addends of a sum -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between two backward passes each rank may have a sum of its own gradients,
// and the sum of all ranks is taken later. Then a checkpoint has an addend of
// each rank. An addend is named by the coordinates of its ranks over the axes
// that are not summed over yet.
//
// A load on another number of ranks adds the addends of neighbours: the rank at
// coordinate c of n takes those whose coordinate, times n / their number, is c.
// On as many ranks each takes its own, and on more some take nothing.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_ADDEND_H
#define ZERO_RT_CHECKPOINT_ADDEND_H

#include "zero_rt/library.h"

#include <string>
#include <string_view>
#include <vector>

namespace zero_rt {

struct Addend {
  struct Axis {
    std::string name;
    int64_t coordinate;
    int64_t size;
  };
  std::vector<Axis> axes; // in the order of the mesh; none: the whole sum

  const Axis *find(const std::string &name) const;
  bool hasAxesOf(const Addend &other) const;
  /// "dp=1/4,ep=0/2"
  std::string text() const;
  /// Whether a rank that has |this| addend of a sum takes the one that |stored|
  /// names.
  bool takes(const Addend &stored) const;
  /// How many addends a rank with |this| takes, if all of them have the axes of
  /// |stored|.
  int64_t countTaken(const Addend &stored) const;
};

/// The coordinates of |rank| over |axes|, as bits. Axes of one rank are left
/// out.
Addend addendOf(const zero_rt_library &library, int64_t axes, int32_t rank);

/// Reads the text of an addend. False if |text| is none.
bool readAddend(std::string_view text, Addend &out);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_ADDEND_H
