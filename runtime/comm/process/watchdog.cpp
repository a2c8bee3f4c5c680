//===- watchdog.cpp - Looks while nobody calls the runtime ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/watchdog.h"

using namespace zero_rt;

Watchdog::Watchdog(Device &device, std::function<bool()> look)
    : device(device), look(std::move(look)), thread([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  thread.join();
}

void Watchdog::run() {
  constexpr auto interval = std::chrono::milliseconds(100);
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, interval, [this] { return isOver; })) {
    // A thread that is on the device looks itself while it waits.
    if (!device.tryEnter())
      continue;
    bool isDone = false;
    // If there is no memory now, there may be some next time.
    (void)guarded("watchdog", [&]() -> zero_rt_status {
      isDone = look();
      return ZERO_RT_OK;
    });
    device.leave();
    if (isDone)
      return;
  }
}
