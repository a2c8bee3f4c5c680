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
             uint64_t step, std::unique_ptr<Fabric> fabric, int64_t timeoutMs)
      : Watched(std::move(fabric)), watchdog(std::move(watchdog)),
        device(device), ends(ends), step(step), timeout(timeoutMs) {}
  ~FabricLane() override;

  /// Waits until both ranks have connected, and moves a byte: a fabric may
  /// connect at its first transfer, where a host would wait for the other one.
  zero_rt_status connect();

  zero_rt_status move(void *data, int64_t bytes) override;
  zero_rt_status isDone(bool &out) override;
  zero_rt_stream *getQueue() override { return fabric->getQueue(); }
  void end(bool isDone) override;
  zero_rt_status look() override;

private:
  bool isSource() const { return watchdog->link.rank() == ends.first; }
  zero_rt_status queueMove(void *data, int64_t bytes,
                           std::chrono::milliseconds most);
  std::string describe() const;
  zero_rt_status countDone(bool &isOver, bool &isRunning);

  std::shared_ptr<Watchdog> watchdog;
  Device &device;
  LaneEnds ends;
  uint64_t step;
  uint64_t moves = 0;
  bool isWatched = false;
  bool isClosing = false;
  std::chrono::milliseconds timeout;
  /// The time since which a receive has been waiting for its source only, and
  /// the number of moves before it.
  std::optional<Deadline> runningSince;
  uint64_t running = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_FABRIC_LANE_H
