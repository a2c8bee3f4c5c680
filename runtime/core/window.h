//===- window.h - The backward passes since the last apply ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts backward passes and arrivals. The protocol driver decides when they
// are counted. A window knows nothing of buffers.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_WINDOW_H
#define ZERO_RT_CORE_WINDOW_H

#include "zero_rt/library.h"

#include <cstddef>
#include <vector>

namespace zero_rt {

/// One gradient that did not arrive whole. |backward| counts from 1.
struct MissingGradient {
  int32_t parameter;
  int32_t backward;
  int32_t pieces;   // that arrived
  int32_t slotOpen; // 1: its gradient view was never declared ready
};

class Window {
public:
  explicit Window(const zero_rt_library &library);

  /// |isAsLast|: the backward pass begins with the hint LAST, and ranks run
  /// collectives in it.
  void begin(bool isAsLast);
  void arrive(int32_t parameter);
  /// Ends the open backward pass, if any, and records the gradients that did
  /// not arrive whole. An optional gradient may be missing, but no gradient may
  /// arrive in part. Arrivals stay readable until the next `begin`, for the
  /// handlers that fill.
  void close();
  /// Forgets everything; a new window begins.
  void reset();
  /// A new window, in which |backwards| backward passes are closed already, and
  /// every gradient has arrived in each.
  void resume(int64_t backwards);
  /// Sets the number of backward passes in which a gradient arrived.
  void setDelivered(int32_t parameter, int64_t backwards) {
    numDelivered[std::size_t(parameter)] = backwards;
  }

  bool isOpen() const { return open; }
  int64_t backwards() const { return numBackwards; }
  int64_t closedBackwards() const { return numBackwards - (open ? 1 : 0); }
  int64_t arrivals(int32_t parameter) const {
    return numArrivals[std::size_t(parameter)];
  }
  /// The number of backward passes in which a piece of the gradient arrived.
  int64_t delivered(int32_t parameter) const {
    return numDelivered[std::size_t(parameter)];
  }
  /// All (parameter, backward pass) pairs that count as missing.
  int64_t missing() const { return numMissing; }
  /// The first few of them, for messages.
  const std::vector<MissingGradient> &firstMissing() const { return first; }

  /// The first backward pass that began with the hint LAST and was not the
  /// last, counted from 1; 0 if there is none.
  int64_t begunAsLastInVain() const { return inVain; }

  // The gradient view of a parameter: none, or handed out to be overwritten or
  // added to, and not yet declared ready.
  enum class Slot : int8_t { None, Overwrite, Add };
  Slot slot(int32_t parameter) const { return slots[std::size_t(parameter)]; }
  void setSlot(int32_t parameter, Slot slot) {
    slots[std::size_t(parameter)] = slot;
  }

  /// The number of missing gradients that are remembered by name.
  static constexpr std::size_t maxNamed = 4;

private:
  const zero_rt_library &library;
  bool open = false;
  int64_t numBackwards = 0;
  int64_t numMissing = 0;
  /// The last backward pass with the hint LAST, counted from 1; or 0.
  int64_t asLast = 0;
  int64_t inVain = 0;
  std::vector<int64_t> numArrivals; // of the backward pass opened last
  std::vector<int64_t> numDelivered;
  std::vector<Slot> slots;
  std::vector<MissingGradient> first;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_WINDOW_H
