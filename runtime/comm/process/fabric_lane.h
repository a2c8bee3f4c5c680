//===- fabric_lane.h - A lane over a fabric of two ranks --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_FABRIC_LANE_H
#define ZERO_RT_COMM_PROCESS_FABRIC_LANE_H

#include "comm/lane.h"
#include "comm/process/watchdog.h"

namespace zero_rt {

class FabricLane final : public Lane, public Watched {
public:
  /// |fabric| has a stream of its own, and |ends| are its ranks 0 and 1.
  FabricLane(std::shared_ptr<Watchdog> watchdog, Device &device, LaneEnds ends,
             std::unique_ptr<Fabric> fabric)
      : Watched(std::move(fabric)), watchdog(std::move(watchdog)),
        device(device), ends(ends) {}
  ~FabricLane() override;

  /// Waits until both ranks have connected, and moves a byte: a fabric may
  /// connect at its first transfer, where a host would wait for the other one.
  zero_rt_status connect(std::chrono::milliseconds timeout);

  zero_rt_status move(void *data, int64_t bytes) override;
  zero_rt_status isDone(bool &out) override;
  zero_rt_stream *getQueue() override { return fabric->getQueue(); }
  void close() override { isClosing = true; }
  zero_rt_status look() override;

private:
  zero_rt_status queueMove(void *data, int64_t bytes);
  std::string describe() const;
  zero_rt_status countDone(bool &isOver);

  std::shared_ptr<Watchdog> watchdog;
  Device &device;
  LaneEnds ends;
  uint64_t moves = 0;
  bool isWatched = false;
  bool isClosing = false;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_FABRIC_LANE_H
