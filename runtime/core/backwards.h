//===- backwards.h - Backward passes under way together ---------*- C++ -*-===//
//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interleaved pipeline schedules begin a backward pass before the one before it
// has delivered all of its gradients. Callers then say which backward pass a
// gradient is of. A compiled step sees one backward pass after the other: the
// gradients of later ones wait, where they lie or as copies, until those before
// are closed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_BACKWARDS_H
#define ZERO_RT_CORE_BACKWARDS_H

#include "core/sequence.h"

#include <map>
#include <vector>

namespace zero_rt {

struct Step;

/// A backward pass that callers have named and that is not closed.
struct NamedBackward {
  bool isEnded = false; // all of its gradients have come
  std::vector<WaitingGradient> waiting;
};

/// By number: how many backward passes came before since the last apply.
using NamedBackwards = std::map<int64_t, NamedBackward>;

/// Begins the next backward pass; what waits for it arrives. |hint| is a
/// zero_rt_hint.
zero_rt_status beginBackward(Step &step, int32_t hint, const char *call);

/// Checks that the open backward pass has not been said to have ended.
zero_rt_status checkNotEnded(const Step &step, const char *call);

/// Opens the last of the named backward passes. Error: protocol (one before it
/// has not ended).
zero_rt_status openLastBackward(Step &step, const char *call);

/// Ends all named backward passes and opens the last of them, so that ranks
/// that drop them have reduced the same.
zero_rt_status runToLastBackward(Step &step, const char *call);

/// Forgets them, and gives back the memory of what waits.
void dropBackwards(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_BACKWARDS_H
