//===- fabric_lane.cpp - A lane over a fabric of two ranks ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/fabric_lane.h"

#include "core/pause.h"
#include "core/status.h"

using namespace zero_rt;

FabricLane::~FabricLane() {
  if (!isWatched)
    return;
  bool isEntered = !device.enter();
  if (isEntered && isClosing && !watchdog->link.isBroken())
    (void)guarded("disconnect", [&]() -> zero_rt_status {
      ZERO_RT_TRY(fabric->close());
      return watchdog->awaitReady(*fabric, std::chrono::seconds(1));
    });
  // The watchdog looks while no thread is on the device.
  watchdog->remove(*this);
  if (isEntered)
    device.leave();
}

std::string FabricLane::describe() const {
  return "an activation from rank " + std::to_string(ends.first) + " to rank " +
         std::to_string(ends.second);
}

zero_rt_status FabricLane::queueMove(void *data, int64_t bytes) {
  bool isSource = watchdog->link.rank() == ends.first;
  Trade trade = isSource ? Trade{1, data, bytes, nullptr, 0}
                         : Trade{0, nullptr, 0, data, bytes};
  ZERO_RT_TRY(fabric->beginCall());
  ++moves;
  ZERO_RT_TRY(fabric->trade({trade}));
  // Later work must be queued behind it.
  ZERO_RT_TRY(watchdog->awaitReady(*fabric, std::chrono::hours(24 * 365)));
  return fabric->endCall();
}

zero_rt_status FabricLane::connect(std::chrono::milliseconds timeout) {
  watchdog->add(*this);
  isWatched = true;
  ZERO_RT_TRY(watchdog->awaitReady(*fabric, timeout));
  void *byte = device.allocate(ZERO_RT_SPACE_DEVICE, 1);
  if (!byte)
    return fail(ZERO_RT_OUT_OF_MEMORY, "no memory for a byte");
  // The memory comes and goes on the compute stream.
  zero_rt_status status = device.precede(fabric->getQueue());
  if (!status)
    status = queueMove(byte, 1);
  for (Pause pause; !status; pause()) {
    bool isOver = false;
    status = isDone(isOver);
    if (isOver)
      break;
    if (!status)
      status = watchdog->look();
  }
  device.release(ZERO_RT_SPACE_DEVICE, byte);
  return status;
}

zero_rt_status FabricLane::move(void *data, int64_t bytes) {
  ZERO_RT_TRY(watchdog->check());
  zero_rt_status status =
      guarded("activation", [&] { return queueMove(data, bytes); });
  if (!status || watchdog->link.isBroken())
    return status;
  return watchdog->breakWith(status, describe() + ", on rank " +
                                         std::to_string(watchdog->link.rank()) +
                                         ": " + lastMessage());
}

zero_rt_status FabricLane::look() {
  bool isReady = false, isOver = false;
  zero_rt_status status = fabric->poll(isReady);
  // The other rank may have destroyed the step if there is no work.
  ZERO_RT_TRY(countDone(isOver));
  if (!status || isOver)
    return ZERO_RT_OK;
  return watchdog->link.breakWith(status, describe() + ": " + lastMessage());
}

zero_rt_status FabricLane::countDone(bool &isOver) {
  uint64_t done = 0;
  bool isRunning = false;
  ZERO_RT_TRY(fabric->getProgress(done, isRunning));
  isOver = done == moves;
  return ZERO_RT_OK;
}

zero_rt_status FabricLane::isDone(bool &out) {
  ZERO_RT_TRY(countDone(out));
  return watchdog->check();
}
