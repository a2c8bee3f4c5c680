//===- watchdog.h - Looks after queued collectives --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If a rank does not come, the queue of another rank waits for ever. So while a
// rank waits for its device, it looks whether other ranks have found an error,
// have queued another collective, have left, or are late. Then it gives up all
// fabrics. A caller may wait for its GPU itself, as frameworks do. So a thread
// looks while no thread is on the device, if the transport allows it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_WATCHDOG_H
#define ZERO_RT_COMM_PROCESS_WATCHDOG_H

#include "comm/process/desync_check.h"
#include "device/device.h"
#include "device/interconnect.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace zero_rt {

/// A fabric that a watchdog looks after.
class Watched {
public:
  explicit Watched(std::unique_ptr<Fabric> fabric)
      : fabric(std::move(fabric)) {}
  virtual ~Watched() = default;
  /// Looks for an error of the fabric, or a rank that will not come.
  virtual zero_rt_status look() = 0;
  /// Declares that this rank queues nothing more of |step|.
  virtual void leaveStep(uint64_t step) {}

  const std::unique_ptr<Fabric> fabric;
};

/// The fabric of a process group, and the collectives that this rank has queued
/// on it.
class WatchedFabric final : public Watched {
public:
  WatchedFabric(Link &link, DesyncCheck &desync, uint64_t group,
                std::vector<int32_t> members, int64_t timeoutMs,
                std::unique_ptr<Fabric> fabric);
  ~WatchedFabric() override { desync.leave(group); }

  /// Begins collective |tag|, and tells the other ranks about it.
  zero_rt_status begin(const Tag &tag);
  zero_rt_status end() { return fabric->endCall(); }
  /// Finds ranks that are late, too.
  zero_rt_status look() override;
  void leaveStep(uint64_t step) override { desync.leaveStep(group, step); }

  const uint64_t group;

private:
  zero_rt_status breakWith(zero_rt_status code, const std::string &message) {
    return link.breakWith(code, message);
  }

  Link &link;
  DesyncCheck &desync;
  std::vector<int32_t> members;
  std::chrono::milliseconds timeout;
  std::deque<NamedTag> calls; // collectives that are not done
  /// The time since which the first of them has been waiting for other ranks
  /// only.
  std::optional<Deadline> runningSince;
  std::optional<Deadline> announcedAt; // when the other ranks were asked
};

/// All fabrics of a runtime. Watches the device as long as it lives.
class Watchdog final : public Watch {
public:
  Watchdog(Link &link, DesyncCheck &desync, Device &device,
           Interconnect &interconnect)
      : link(link), desync(desync), interconnect(interconnect), device(device) {
    interconnect.setWatch(this);
  }
  ~Watchdog() override {
    stop();
    interconnect.setWatch(nullptr);
  }

  /// The first fabric starts the thread. Throws the errors of std::thread.
  void add(Watched &fabric);
  void remove(Watched &fabric);
  /// Ends the thread.
  void stop();

  /// Looks for an error. On an error it gives up all fabrics.
  zero_rt_status look() override;
  /// An error that is already known, before work is queued.
  zero_rt_status check();
  /// Waits until all ranks of |fabric| have connected, or until its operations
  /// are queued or sent. This may wait for other ranks.
  zero_rt_status awaitReady(Fabric &fabric, std::chrono::milliseconds most);
  /// Gives up all fabrics, and tells the other ranks |message|; returns |code|.
  zero_rt_status breakWith(zero_rt_status code, const std::string &message);
  /// Declares that this rank queues nothing more of |step|.
  void leaveStep(uint64_t step);

  Link &link;
  DesyncCheck &desync;
  Interconnect &interconnect;

private:
  void abort();
  zero_rt_status giveUp(zero_rt_status status);
  void run();

  Device &device;
  std::vector<Watched *> fabrics;
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false; // the thread is asked to end
  std::thread thread;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_WATCHDOG_H
