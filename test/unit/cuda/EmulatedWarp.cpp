//===- EmulatedWarp.cpp - The threads of a warp on one thread -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedWarp.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

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
  job();
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

void EmulatedWarp::start(std::function<void(int)> newEnter,
                         std::function<void()> newJob) {
  enter = std::move(newEnter);
  job = std::move(newJob);
  auto address = reinterpret_cast<uintptr_t>(this);
  for (Lane &lane : lanes) {
    if (!lane.isDone)
      continue; // for ever
    lane.isDone = false;
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack->bytes;
    lane.context.uc_stack.ss_size = sizeof(lane.stack->bytes);
    lane.context.uc_link = nullptr;
    makecontext(&lane.context, reinterpret_cast<void (*)()>(begin), 2,
                unsigned(address >> 32), unsigned(address));
  }
}

EmulatedWarp::Progress EmulatedWarp::advance(std::mt19937 &random) {
  int order[kWarpSize];
  std::iota(order, order + kWarpSize, 0);
  std::shuffle(order, order + kWarpSize, random);
  bool isDone = true;
  hasMoved = false;
  for (int lane : order) {
    if (lanes[lane].isDone)
      continue;
    if (random() % 4 == 0) { // it is late
      isDone = false;
      hasMoved = true;
      continue;
    }
    enter(lane);
    enterLane(lane);
    hasMoved |= lanes[lane].isDone;
    isDone &= lanes[lane].isDone;
  }
  return isDone ? Progress::Done : hasMoved ? Progress::Going : Progress::Stuck;
}

//===----------------------------------------------------------------------===//
// Talk
//===----------------------------------------------------------------------===//

uint32_t EmulatedWarp::exchange(int site, uint32_t mask, uint32_t value,
                                int other) {
  int lane = current;
  EXPECT_TRUE(mask >> lane & 1) << "lane " << lane << " is no member";
  EXPECT_TRUE(mask >> other & 1) << "nor is lane " << other;
  Team &team = teams[{site, mask}];
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

void EmulatedWarp::pause() {
  hasMoved = true;
  leaveLane(/*forGood=*/false);
}
