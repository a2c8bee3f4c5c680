//===- pause.h - How long to sleep between two looks ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_PAUSE_H
#define ZERO_RT_CORE_PAUSE_H

#include <chrono>
#include <thread>

namespace zero_rt {

/// A pause in a polling loop. At first it only yields, because most waits are
/// short.
class Pause {
public:
  void operator()() {
    constexpr int eager = 200;
    if (++looks < eager)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

private:
  int looks = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_PAUSE_H
