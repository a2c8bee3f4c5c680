//===- lane.h - From the device of one rank to that of another --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane goes one way between two ranks. Its source sends and its destination
// receives, in the same order and with the same sizes. Both are queued on a
// stream of the lane, where a send may wait for its receive: no host waits, and
// no other stream.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_LANE_H
#define ZERO_RT_COMM_LANE_H

#include "zero_rt/abi.h"

#include <utility>

namespace zero_rt {

/// The ranks from which and to which a lane goes.
using LaneEnds = std::pair<int32_t, int32_t>;

/// One rank's end.
class Lane {
public:
  virtual ~Lane() = default;
  /// The source queues a send, and the destination a receive, of |bytes| > 0
  /// bytes of device memory. After an error no rank of the group continues.
  virtual zero_rt_status move(void *data, int64_t bytes) = 0;
  /// Whether all that was queued is done. Errors: those of other ranks.
  virtual zero_rt_status isDone(bool &out) = 0;
  virtual zero_rt_stream *getQueue() = 0;
  /// Begins the end of a lane: a regular one if all is done on both ranks, or
  /// else one that gives up what is queued. All lanes of a device begin to end
  /// before the first is destroyed.
  virtual void end(bool isDone) = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_LANE_H
