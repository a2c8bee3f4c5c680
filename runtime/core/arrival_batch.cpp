//===- arrival_batch.cpp - Gradients that arrive together -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/arrival_batch.h"

#include "core/protocol.h"
#include "core/step.h"

#include <string>
#include <utility>

using namespace zero_rt;

BatchScope::BatchScope(Step &step, const char *call) : step(&step) {
  if (step.device().isImmediate() || step.program->beginBatch()) {
    this->step = nullptr;
    return;
  }
  step.batch.isOpen = true;
  step.batch.call = call;
}

BatchScope::~BatchScope() { (void)end(ZERO_RT_OK); }

/// An event that can't be recorded counts as one that was never recorded.
static zero_rt_status recordAll(Step &step, ArrivalBatch &batch) {
  zero_rt_status status = ZERO_RT_OK;
  for (int64_t number : batch.recorded) {
    StreamEvent &event = step.events[size_t(number)];
    zero_rt_status failed = step.device().record(&event.signal);
    event.isRecorded = !failed;
    status = status ? status : failed;
  }
  batch.recorded.clear();
  return status;
}

/// Gradients that were taken are lost if what was put off fails.
static zero_rt_status poisonIf(zero_rt_status failed, Step &step,
                               const char *call) {
  if (failed)
    poisonStep(step, call, failed);
  return failed;
}

zero_rt_status zero_rt::settleBatch(Step &step) {
  if (!step.batch.isOpen)
    return ZERO_RT_OK;
  const char *call = step.batch.call;
  ZERO_RT_TRY(poisonIf(step.program->flushBatch(), step, call));
  return poisonIf(recordAll(step, step.batch), step, call);
}

/// Gives one tensor back after its event; if that was not recorded, after all
/// work so far.
static zero_rt_status giveBack(Step &step,
                               const ArrivalBatch::Release &release) {
  StreamEvent &event = step.events[size_t(release.event)];
  Device &device = step.device();
  if (!release.timepoint)
    return event.isRecorded ? device.precede(release.stream, event.signal)
                            : device.precede(release.stream);
  if (!event.isRecorded || std::exchange(event.isMarked, true))
    return device.mark(release.timepoint);
  return device.mark(release.timepoint, event.signal);
}

static zero_rt_status giveBackAll(Step &step, const ArrivalBatch &batch) {
  zero_rt_status status = ZERO_RT_OK;
  auto give = [&](const ArrivalBatch::Release &release) {
    zero_rt_status failed = giveBack(step, release);
    status = status ? status : failed;
  };
  // Those that arrive in this call share a timepoint, or a stream.
  const ArrivalBatch::Release *shared = nullptr;
  for (const ArrivalBatch::Release &release : batch.releases)
    if (release.timepoint == batch.timepoint)
      shared = &release; // the last one
    else
      give(release);
  if (shared)
    give(*shared);
  return status;
}

zero_rt_status BatchScope::end(zero_rt_status status) {
  if (!step)
    return status;
  Step &mine = *std::exchange(step, nullptr);
  ArrivalBatch batch = std::exchange(mine.batch, {});
  std::string message = status ? lastMessage() : "";
  // Tensors are given back also after an error, so that nobody waits for them.
  auto attempt = [&](auto &&body) {
    zero_rt_status failed =
        poisonIf(guarded(batch.call, body), mine, batch.call);
    if (failed && !status) {
      status = failed;
      message = lastMessage();
    }
  };
  attempt([&] { return mine.program->endBatch(); });
  attempt([&] { return recordAll(mine, batch); });
  attempt([&] { return giveBackAll(mine, batch); });
  return status ? fail(status, "%s", message.c_str()) : status;
}
