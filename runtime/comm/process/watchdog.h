//===- watchdog.h - Looks while nobody calls the runtime --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller may wait for its GPU itself, as frameworks do, while the GPU waits
// for a rank that never comes. Then no call of the runtime looks for errors.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_WATCHDOG_H
#define ZERO_RT_COMM_PROCESS_WATCHDOG_H

#include "device/device.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace zero_rt {

/// Calls |look| every 100 ms on a thread of its own, if no other thread is on
/// |device|. Stops when |look| returns true, or when this object is destroyed.
/// Throws what std::thread throws.
class Watchdog {
public:
  Watchdog(Device &device, std::function<bool()> look);
  ~Watchdog();

private:
  void run();

  Device &device;
  std::function<bool()> look;
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  std::thread thread; // declared last: it uses the other members
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_WATCHDOG_H
