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

void FabricLane::end(bool isDone) {
  isClosing = isDone;
  // The device may wait for what is queued.
  if (!isDone)
    fabric->abort();
}

std::string FabricLane::describe() const {
  return "an activation from rank " + std::to_string(ends.first) + " to rank " +
         std::to_string(ends.second);
}

zero_rt_status FabricLane::queueMove(void *data, int64_t bytes,
                                     std::chrono::milliseconds most) {
  Trade trade = isSource() ? Trade{1, data, bytes, nullptr, 0}
                           : Trade{0, nullptr, 0, data, bytes};
  ZERO_RT_TRY(fabric->beginCall());
  ++moves;
  ZERO_RT_TRY(fabric->trade({trade}));
  // Later work must be queued behind it.
  ZERO_RT_TRY(watchdog->awaitReady(*fabric, most));
  return fabric->endCall();
}

zero_rt_status FabricLane::connect() {
  watchdog->add(*this);
  isWatched = true;
  ZERO_RT_TRY(watchdog->awaitReady(*fabric, timeout));
  void *byte = device.allocate(ZERO_RT_SPACE_DEVICE, 1);
  if (!byte)
    return fail(ZERO_RT_OUT_OF_MEMORY, "no memory for a byte");
  // The memory comes and goes on the compute stream.
  zero_rt_status status = device.precede(fabric->getQueue());
  if (!status)
    status = queueMove(byte, 1, timeout);
  Deadline last = std::chrono::steady_clock::now() + timeout;
  for (Pause pause; !status; pause()) {
    bool isOver = false;
    status = isDone(isOver);
    if (isOver)
      break;
    if (!status && std::chrono::steady_clock::now() >= last)
      status = fail(ZERO_RT_TIMEOUT, "%s did not pass within %lld ms",
                    describe().c_str(), (long long)timeout.count());
  }
  // Nothing writes the byte after that.
  if (status)
    fabric->abort();
  device.release(ZERO_RT_SPACE_DEVICE, byte);
  return status;
}

zero_rt_status FabricLane::move(void *data, int64_t bytes) {
  ZERO_RT_TRY(watchdog->check());
  zero_rt_status status = guarded("activation", [&] {
    return queueMove(data, bytes, std::chrono::hours(24 * 365));
  });
  if (!status || watchdog->link.isBroken())
    return status;
  return watchdog->breakWith(status, describe() + ", on rank " +
                                         std::to_string(watchdog->link.rank()) +
                                         ": " + lastMessage());
}

zero_rt_status FabricLane::look() {
  bool isReady = false, isOver = false, isRunning = false;
  zero_rt_status status = fabric->poll(isReady);
  // The other rank may have destroyed the step if there is no work.
  zero_rt_status counted = countDone(isOver, isRunning);
  status = status ? status : counted;
  if (!counted && isOver) {
    runningSince.reset();
    return ZERO_RT_OK;
  }
  auto breakWith = [&](zero_rt_status code, const std::string &why) {
    return watchdog->link.breakWith(code, describe() + why);
  };
  // A send may wait for as long as the destination does not ask for it, or for
  // ever if that has left.
  if (isSource() && watchdog->link.hasEnded(ends.second, step))
    return ZERO_RT_OK;
  if (status)
    return breakWith(status, std::string(": ") + lastMessage());
  if (isSource())
    return ZERO_RT_OK;
  if (watchdog->desync.isGone(ends.first))
    return breakWith(ZERO_RT_TIMEOUT,
                     ": rank " + std::to_string(ends.first) + " is gone");
  if (!isRunning)
    return ZERO_RT_OK;
  Deadline now = std::chrono::steady_clock::now();
  if (!runningSince)
    runningSince = now;
  if (now - *runningSince < timeout)
    return ZERO_RT_OK;
  return breakWith(ZERO_RT_TIMEOUT, " was announced and did not come within " +
                                        std::to_string(timeout.count()) +
                                        " ms");
}

zero_rt_status FabricLane::countDone(bool &isOver, bool &isRunning) {
  uint64_t done = 0;
  ZERO_RT_TRY(fabric->getProgress(done, isRunning));
  if (done != running)
    runningSince.reset();
  running = done;
  isOver = done == moves;
  return ZERO_RT_OK;
}

zero_rt_status FabricLane::isDone(bool &out) {
  bool isRunning = false;
  ZERO_RT_TRY(countDone(out, isRunning));
  return watchdog->look();
}
