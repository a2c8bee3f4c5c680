//===- window.h - The backward passes since the last apply ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts backward passes and arrivals; the protocol driver decides when. It
// knows nothing of buffers.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_WINDOW_H
#define ZERO_RT_CORE_WINDOW_H

#include "zero_rt/library.h"

#include <cstddef>
#include <vector>

namespace zero_rt {

/// One gradient that did not arrive whole; backward passes count from 1.
struct MissingGradient {
  int32_t parameter;
  int32_t backward;
  int32_t pieces;   // that did arrive
  int32_t slotOpen; // 1: its slot was handed out and never declared ready
};

class Window {
public:
  explicit Window(const zero_rt_library &library);

  /// |isAsLast|: the caller says that it is the last one, and ranks meet in it.
  void begin(bool isAsLast);
  void arrive(int32_t parameter);
  /// Ends the open backward pass, if any, and books what did not arrive whole:
  /// an optional gradient may stay away, and nothing may come in part. Arrivals
  /// stay readable until the next `begin`, for the handlers that fill.
  void close();
  /// Forgets everything: the window begins anew.
  void reset();

  bool isOpen() const { return open; }
  int64_t backwards() const { return numBackwards; }
  int64_t closedBackwards() const { return numBackwards - (open ? 1 : 0); }
  int64_t arrivals(int32_t parameter) const {
    return numArrivals[std::size_t(parameter)];
  }
  /// All (parameter, backward pass) pairs that count as missing.
  int64_t missing() const { return numMissing; }
  /// The first few of them, for messages.
  const std::vector<MissingGradient> &firstMissing() const { return first; }

  /// The first backward pass that was begun as the last and was not, counted
  /// from 1; or 0.
  int64_t begunAsLastInVain() const { return inVain; }

  // A slot that was handed out and not yet declared ready.
  enum class Slot : int8_t { None, Overwrite, Add };
  Slot slot(int32_t parameter) const { return slots[std::size_t(parameter)]; }
  void setSlot(int32_t parameter, Slot slot) {
    slots[std::size_t(parameter)] = slot;
  }

  /// How many missing gradients are remembered by name.
  static constexpr std::size_t maxNamed = 4;

private:
  const zero_rt_library &library;
  bool open = false;
  int64_t numBackwards = 0;
  int64_t numMissing = 0;
  int64_t asLast =
      0; // the backward pass that was begun so, counted from 1; or 0
  int64_t inVain = 0;
  std::vector<int64_t> numArrivals; // of the backward pass opened last
  std::vector<Slot> slots;
  std::vector<MissingGradient> first;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_WINDOW_H
