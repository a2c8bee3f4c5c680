//===- arrival_batch.h - Gradients that arrive together ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The handler of an arrival waits for the caller's stream, packs one gradient,
// records an event and gives the tensor back. A batch does each of this once
// for the gradients of one call. The stream of the caller has no work between
// them, and later records and releases mean the earlier ones, too. What another
// stream waits for is queued before the wait, and everything before a bucket is
// closed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_ARRIVAL_BATCH_H
#define ZERO_RT_CORE_ARRIVAL_BATCH_H

#include "zero_rt/abi.h"

#include <cstdint>
#include <vector>

namespace zero_rt {

struct Step;

/// What the open batch of a step has put off.
struct ArrivalBatch {
  /// A tensor that is given back after |event|, to |stream| or, if it is not 0,
  /// at |timepoint|.
  struct Release {
    int64_t event;
    zero_rt_stream *stream;
    zero_rt_timepoint timepoint;
  };

  bool isOpen = false;
  const char *call = nullptr; // that has opened it
  /// The events of the caller's stream that this call has recorded.
  std::vector<int64_t> followed;
  std::vector<int64_t> recorded; // on the compute stream, and not queued yet
  std::vector<Release> releases;
  /// Of all tensors that arrive in this call, if they have one.
  zero_rt_timepoint timepoint = 0;
};

/// Opens a batch of |step|, unless the device has no streams.
class BatchScope {
public:
  BatchScope(Step &step, const char *call);
  ~BatchScope();
  BatchScope(const BatchScope &) = delete;
  BatchScope &operator=(const BatchScope &) = delete;
  /// Does what was put off, also after the error |status|. Poisons the step if
  /// that fails. Returns the first error.
  zero_rt_status end(zero_rt_status status);

private:
  Step *step; // null: there is no batch, or it has ended
};

/// Queues the launches and records that the open batch has put off. Poisons the
/// step if that fails.
zero_rt_status settleBatch(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_ARRIVAL_BATCH_H
