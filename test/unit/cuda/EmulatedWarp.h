//===- EmulatedWarp.h - The threads of a warp on one thread -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each has a stack of its own and runs until it waits for others of its warp.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_EMULATEDWARP_H
#define ZERO_TEST_UNIT_CUDA_EMULATEDWARP_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <ucontext.h>
#include <utility>

namespace zero::test {

constexpr int kWarpSize = 32;

class EmulatedWarp {
public:
  EmulatedWarp();
  ~EmulatedWarp();

  /// Has |job| called in each lane; |enter| is told which lane it is whenever
  /// that goes on. Where lanes of an earlier job wait for ever, they stay.
  void start(std::function<void(int)> enter, std::function<void()> job);

  /// Lets most lanes go on, in an order of |random|'s, until they wait.
  /// Stuck: all wait, and not all have come who would have to.
  enum class Progress { Done, Going, Stuck };
  Progress advance(std::mt19937 &random);

  /// What the member of |mask| that calls it gets from the lane |other|, as
  /// soon as all members have called it from the same |site| of the code.
  uint32_t exchange(int site, uint32_t mask, uint32_t value, int other);
  /// Lets others go on before the lane that calls it.
  void pause();

private:
  struct Stack;
  struct Lane {
    ucontext_t context;
    std::unique_ptr<Stack> stack;
    bool isDone = true;
    void *fakeStack = nullptr; // of the address sanitizer
  };
  struct Team {
    uint32_t given[kWarpSize] = {};
    uint32_t taken[kWarpSize] = {};
    int arrived = 0;
    uint64_t turn = 0;
  };

  static void begin(unsigned high, unsigned low);
  void work();
  void enterLane(int lane);
  /// Goes back to `advance`, for good or until that comes back.
  void leaveLane(bool forGood);

  Lane lanes[kWarpSize];
  ucontext_t scheduler;
  const void *schedulerStack = nullptr;
  size_t schedulerSize = 0;
  int current = 0;
  bool hasMoved = false; // since the last look
  std::function<void(int)> enter;
  std::function<void()> job;
  std::map<std::pair<int, uint32_t>, Team> teams; // by site and members
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_CUDA_EMULATEDWARP_H
