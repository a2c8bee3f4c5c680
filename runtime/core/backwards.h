//===- backwards.h - Backward passes under way together ---------*- C++ -*-===//
//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interleaved pipeline schedules begin a backward pass before the previous one
// has delivered all of its gradients. Callers then name the backward pass of
// each gradient. A compiled step sees one backward pass after the other: the
// gradients of later ones wait, in place or as copies, until the earlier ones
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

/// A backward pass that the caller has named and that is not closed.
struct NamedBackward {
  bool isEnded = false; // all of its gradients have come
  std::vector<WaitingGradient> waiting;
};

/// By number: the count of earlier backward passes since the last apply.
using NamedBackwards = std::map<int64_t, NamedBackward>;

/// Begins the next backward pass. The gradients that wait for it arrive. |hint|
/// is a zero_rt_hint.
zero_rt_status beginBackward(Step &step, int32_t hint, const char *call);

/// Checks that the caller has not ended the open backward pass.
zero_rt_status checkNotEnded(const Step &step, const char *call);

/// Opens the last of the named backward passes. Error: protocol (an earlier one
/// has not ended).
zero_rt_status openLastBackward(Step &step, const char *call);

/// Ends all named backward passes and opens the last one, so that ranks that
/// drop them have run the same collectives.
zero_rt_status runToLastBackward(Step &step, const char *call);

/// Forgets the named backward passes, and releases the gradients that wait.
void dropBackwards(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_BACKWARDS_H
