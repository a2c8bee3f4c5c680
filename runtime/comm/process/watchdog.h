//===- watchdog.h - Looks while nobody calls the runtime --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller may wait for its GPU by itself, as frameworks do, and the GPU for a
// rank that never comes. Then no call of the runtime is there to look.
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

/// Calls |look| ten times a second, on a thread of its own, when no other is on
/// |device|; until that says that there is nothing more to see, or this is
/// destroyed. Throws what std::thread throws.
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
  std::thread thread; // last: it uses the rest
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_WATCHDOG_H
