//===- EmulatedWarp.cpp - The threads of a warp on one thread -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedWarp.h"

#include <algorithm>
#include <gtest/gtest.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ZERO_HAS_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#endif

using namespace zero::test;

/// Kernels have few variables, and call what fails a test.
struct EmulatedWarp::Stack {
  alignas(64) char bytes[64 * 1024];
};

/// The address sanitizer wants to know of stacks that it has not made. |kept|
/// is where it puts what it knows of the one that is left; null: for good.
static void announce(void **kept, const void *stack, size_t size) {
#if ZERO_HAS_ASAN
  __sanitizer_start_switch_fiber(kept, stack, size);
#else
  (void)kept, (void)stack, (void)size;
#endif
}

static void arrive(void *kept, const void **from, size_t *size) {
#if ZERO_HAS_ASAN
  __sanitizer_finish_switch_fiber(kept, from, size);
#else
  (void)kept, (void)from, (void)size;
#endif
}

EmulatedWarp::EmulatedWarp() {
  for (Lane &lane : lanes)
    lane.stack = std::make_unique<Stack>();
}

EmulatedWarp::~EmulatedWarp() = default;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// What makecontext calls has numbers for arguments.
void EmulatedWarp::begin(unsigned high, unsigned low) {
  auto address = uintptr_t(high) << 32 | low;
  reinterpret_cast<EmulatedWarp *>(address)->work();
}

void EmulatedWarp::work() {
  arrive(nullptr, &schedulerStack, &schedulerSize);
  (*job)();
  lanes[current].isDone = true;
  leaveLane(/*forGood=*/true);
}

void EmulatedWarp::leaveLane(bool forGood) {
  Lane &lane = lanes[current];
  announce(forGood ? nullptr : &lane.fakeStack, schedulerStack, schedulerSize);
  swapcontext(&lane.context, &scheduler);
  arrive(lane.fakeStack, &schedulerStack, &schedulerSize);
}

void EmulatedWarp::enterLane(int index) {
  current = index;
  Lane &lane = lanes[index];
  void *fakeStack = nullptr;
  announce(&fakeStack, lane.stack->bytes, sizeof(lane.stack->bytes));
  swapcontext(&scheduler, &lane.context);
  arrive(fakeStack, nullptr, nullptr);
}

bool EmulatedWarp::run(const std::function<void(int)> &enter,
                       const std::function<void()> &newJob) {
  job = &newJob;
  auto address = reinterpret_cast<uintptr_t>(this);
  for (Lane &lane : lanes) {
    if (!lane.isDone)
      return false; // since an earlier run
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack->bytes;
    lane.context.uc_stack.ss_size = sizeof(lane.stack->bytes);
    lane.context.uc_link = nullptr;
    makecontext(&lane.context, reinterpret_cast<void (*)()>(begin), 2,
                unsigned(address >> 32), unsigned(address));
  }
  for (Lane &lane : lanes)
    lane.isDone = false;
  for (bool isDone = false; !isDone;) {
    isDone = true;
    hasMoved = false;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if (lanes[lane].isDone)
        continue;
      enter(lane);
      enterLane(lane);
      hasMoved |= lanes[lane].isDone;
      isDone &= lanes[lane].isDone;
    }
    if (!isDone && !hasMoved)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Talk
//===----------------------------------------------------------------------===//

uint32_t EmulatedWarp::exchange(uint32_t mask, uint32_t value, int other) {
  int lane = current;
  EXPECT_TRUE(mask >> lane & 1) << "lane " << lane << " is no member";
  EXPECT_TRUE(mask >> other & 1) << "nor is lane " << other;
  Team &team = teams[mask];
  team.given[lane] = value;
  uint64_t now = team.turn;
  hasMoved = true;
  if (++team.arrived == __builtin_popcount(mask)) {
    std::copy_n(team.given, kWarpSize, team.taken);
    team.arrived = 0;
    ++team.turn;
  }
  while (team.turn == now)
    leaveLane(/*forGood=*/false);
  return team.taken[other];
}
