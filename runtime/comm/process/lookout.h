//===- lookout.h - Looks after collectives that are queued ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A queue that waits for another rank waits for ever if that does not come. So
// while a rank waits for its device it looks whether others have found an
// error, queued something else, left, or are late; then everything is given up.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_LOOKOUT_H
#define ZERO_RT_COMM_PROCESS_LOOKOUT_H

#include "comm/process/watchdog.h"
#include "comm/process/witness.h"
#include "device/interconnect.h"

#include <optional>

namespace zero_rt {

/// The fabric of a group, and what this rank queued there.
class WatchedFabric {
public:
  WatchedFabric(Link &link, Witness &witness, uint64_t group,
                std::vector<int32_t> members, int64_t timeoutMs,
                std::unique_ptr<Fabric> fabric);
  ~WatchedFabric() { witness.leave(group); }

  /// Begins collective |tag|, of which the others are told.
  zero_rt_status begin(const Tag &tag);
  zero_rt_status end() { return fabric->endCall(); }
  /// An error of NCCL's, a rank that will not come, or one that is late.
  zero_rt_status look();

  const uint64_t group;
  const std::unique_ptr<Fabric> fabric;

private:
  zero_rt_status breakWith(zero_rt_status code, const std::string &message) {
    return link.breakWith(code, message);
  }

  Link &link;
  Witness &witness;
  std::vector<int32_t> members;
  std::chrono::milliseconds timeout;
  std::deque<Header> calls; // that are not done
  /// Since when the first of these is waiting for others only.
  std::optional<Deadline> runningSince;
  std::optional<Deadline> announcedAt; // that it does
};

/// All fabrics of a runtime. It watches the device as long as it lives.
class Lookout final : public Watch {
public:
  Lookout(Link &link, Witness &witness, Device &device,
          Interconnect &interconnect)
      : link(link), witness(witness), interconnect(interconnect),
        device(device) {
    interconnect.setWatch(this);
  }
  ~Lookout() override { interconnect.setWatch(nullptr); }

  void add(WatchedFabric &fabric);
  void remove(WatchedFabric &fabric);
  /// Looks by itself from the first fabric on, where the transport lets it,
  /// until this.
  void stopLooking() { watchdog.reset(); }

  /// What is wrong; then everything is given up.
  zero_rt_status look() override;
  /// What is known to be wrong, before something is queued.
  zero_rt_status check();
  /// Gives everything up, and tells the others why; returns |code|.
  zero_rt_status breakWith(zero_rt_status code, const std::string &message);
  /// This rank queues nothing more of |step|.
  void leaveStep(uint64_t step);

  Link &link;
  Witness &witness;
  Interconnect &interconnect;

private:
  void abort();
  zero_rt_status giveUp(zero_rt_status status);

  Device &device;
  std::vector<WatchedFabric *> fabrics;
  std::unique_ptr<Watchdog> watchdog;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_LOOKOUT_H
