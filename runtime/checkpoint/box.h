//===- box.h - The part of a parameter that a rank holds --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Axes divide the dimensions of a parameter, so what a rank holds is a box in
// it. In a checkpoint the box stands for the axes: a step on a mesh with other
// sizes of them finds its elements in the boxes of the ranks that saved.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_BOX_H
#define ZERO_RT_CHECKPOINT_BOX_H

#include "core/localize.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace zero_rt {

/// A box in a parameter. Elements of a box are in row-major order.
struct Box {
  struct Dimension {
    int64_t whole; // of the parameter
    int64_t begin;
    int64_t extent;

    bool operator==(const Dimension &other) const {
      return whole == other.whole && begin == other.begin &&
             extent == other.extent;
    }
  };
  /// None: where the box is in the parameter is not known.
  std::vector<Dimension> dimensions;

  bool isKnown() const { return !dimensions.empty(); }
  bool isWhole() const;
  int64_t elements() const;
  /// Whether both are in a parameter of one shape.
  bool hasShapeOf(const Box &other) const;
  bool operator==(const Box &other) const {
    return dimensions == other.dimensions;
  }

  /// "24:12+6x8:0+8": for each dimension WHOLE:BEGIN+EXTENT.
  std::string text() const;
};

/// What |rank| holds of |parameter|; not known for a library without shapes.
Box boxOf(const zero_rt_library &whole, int64_t parameter, int32_t rank);

/// The whole of the parameter that |box| is in.
Box wholeOf(const Box &box);

/// Reads a box of |elements|. False if |text| is none.
bool readBox(std::string_view text, int64_t elements, Box &out);

/// Calls |function| with each run of elements that the elements |ofA| of |a|
/// and |ofB| of |b| have in common: where the run begins in both, and its
/// length. Both are known, and have one shape.
void forEachRun(const Box &a, Range ofA, const Box &b, Range ofB,
                const std::function<void(int64_t inA, int64_t inB,
                                         int64_t count)> &function);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_BOX_H
