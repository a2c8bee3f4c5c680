//===- sequence.h - Closes buckets in order ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients arrive in any order, and buckets are closed and reduced in one
// order. Buckets share memory, to save it: a gradient waits while an earlier
// bucket with the same memory is not closed. The library gives the order and
// the memory (zero_rt_sequence_row).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_SEQUENCE_H
#define ZERO_RT_CORE_SEQUENCE_H

#include "core/memory.h"
#include "device/device.h"
#include "zero_rt/library.h"

#include <cstddef>
#include <map>
#include <vector>

namespace zero_rt {

struct Step;

/// A gradient that arrived before its bucket was open.
struct WaitingGradient {
  int32_t parameter = -1;
  zero_rt_tensor tensor = {};
  /// A copy, if the caller asked for no release. Otherwise empty: the caller
  /// lends its tensor until |release|.
  Block copy;
  zero_rt_timepoint release = 0;
  /// A record of the caller's stream at the delivery. Null: there is none, or
  /// the handler of the arrival has taken it.
  Signal delivered = nullptr;
  uint64_t digest = 0; // of a lent tensor, if preconditions are checked
};

/// The state of the open backward pass.
struct SequenceState {
  int64_t closed = 0; // buckets, from the first on
  /// By bucket: pieces of gradients to come. A gradient of any number of pieces
  /// counts as one that does not come before the backward pass ends. In a step
  /// with units, one more, until the unit is resharded.
  std::vector<int64_t> outstanding;
  std::vector<bool> resharded;            // by unit: its gradients have ended
  std::vector<int64_t> waitingOf;         // gradients that wait, by parameter
  std::vector<WaitingGradient> waiting;   // in order of arrival
  std::vector<WaitingGradient> handedOut; // views of buckets not yet open
  /// By parameter: the stream that writes to a gradient view that is not ready.
  std::map<int32_t, zero_rt_stream *> writers;
};

/// Begins a backward pass, in which no gradient has arrived.
void beginSequence(Step &step);

/// Whether gradients of |bucket| are packed when they arrive.
bool isBucketOpen(const Step &step, const zero_rt_transition_row &row,
                  int64_t bucket);

/// Keeps |gradient| until its bucket opens.
void waitForBucket(Step &step, WaitingGradient gradient);

/// Counts a packed gradient, and closes the buckets that are complete now.
zero_rt_status advanceSequence(Step &step, const zero_rt_transition_row &row,
                               int32_t parameter, const char *call);

/// Packs the gradients that wait for |bucket|, which is open, and closes the
/// buckets that are complete then.
zero_rt_status packAndAdvance(Step &step, const zero_rt_transition_row &row,
                              int64_t bucket, const char *call);

/// Becomes the owner of |gradients|. Packs each of them whose bucket is open,
/// or is opened by another. The others wait.
zero_rt_status arriveAll(Step &step, std::vector<WaitingGradient> &gradients,
                         const char *call);

/// Ends the gradients of |unit|, and closes the buckets that are complete now.
/// Does nothing where no backward pass is open.
zero_rt_status closeUnit(Step &step, const zero_rt_transition_row &row,
                         int64_t unit, const char *call);

/// Closes the remaining buckets. Gradients that have not arrived are missing.
zero_rt_status finishSequence(Step &step, const zero_rt_transition_row &row,
                              const char *call);

/// Releases the memory in which a gradient waited: a copy, or the caller's
/// tensor.
void releaseWaiting(Step &step, WaitingGradient &gradient);

/// Releases the memory of all gradients that wait. Later work starts after the
/// work on the streams of gradient views that were never declared ready.
void dropWaiting(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_SEQUENCE_H
