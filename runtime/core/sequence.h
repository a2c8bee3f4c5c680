//===- sequence.h - Closes buckets in order ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients arrive in any order; buckets are closed, and reduced, in one. Only
// a few buckets are open at once, so that few need memory: a gradient of a
// later one waits. The library says which buckets and how many
// (zero_rt_sequence_row).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_SEQUENCE_H
#define ZERO_RT_CORE_SEQUENCE_H

#include "core/memory.h"
#include "zero_rt/library.h"

#include <cstddef>
#include <map>
#include <vector>

namespace zero_rt {

struct Step;

/// A gradient that came before its bucket was open.
struct WaitingGradient {
  int32_t parameter = -1;
  zero_rt_tensor tensor = {};
  /// A copy of ours, where the caller asked for no release; else empty, and the
  /// caller's tensor is lent to us until |release|.
  Block copy;
  zero_rt_timepoint release = 0;
  uint64_t digest = 0; // of what is lent, where preconditions are checked
};

/// The state of the open backward pass.
struct SequenceState {
  int64_t closed = 0;                     // buckets, from the first on
  std::vector<int64_t> outstanding;       // gradients to come, by bucket
  std::vector<int64_t> waitingOf;         // gradients waiting, by parameter
  std::vector<WaitingGradient> waiting;   // as they came
  std::vector<WaitingGradient> handedOut; // views of later buckets
  /// The streams that write to gradient views not yet ready, by parameter.
  std::map<int32_t, zero_rt_stream *> writers;
};

/// Starts a backward pass: no gradient has arrived.
void beginSequence(Step &step);

/// Whether gradients of |bucket| are packed as they come.
bool isBucketOpen(const Step &step, const zero_rt_transition_row &row,
                  int64_t bucket);

/// Keeps |gradient| until its bucket opens.
void waitForBucket(Step &step, WaitingGradient gradient);

/// Books a packed gradient and closes the buckets that are complete now.
zero_rt_status advanceSequence(Step &step, const zero_rt_transition_row &row,
                               int32_t parameter, const char *call);

/// Packs what waits for |bucket|, which is open, and closes the buckets that
/// are complete then.
zero_rt_status packAndAdvance(Step &step, const zero_rt_transition_row &row,
                              int64_t bucket, const char *call);

/// Takes |gradients| over: packs those whose buckets are open or open by that;
/// the others wait.
zero_rt_status arriveAll(Step &step, std::vector<WaitingGradient> &gradients,
                         const char *call);

/// Closes all buckets that are left: what did not arrive, never will.
zero_rt_status finishSequence(Step &step, const zero_rt_transition_row &row,
                              const char *call);

/// Gives back what a gradient waited in, ours or the caller's.
void releaseWaiting(Step &step, WaitingGradient &gradient);

/// Gives back the memory of whatever still waits. What comes after that comes
/// after what is on the streams of slots that were never declared ready.
void dropWaiting(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_SEQUENCE_H
