//===- arrival_batch.cpp - Gradients that arrive together -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/arrival_batch.h"

#include "core/protocol.h"
#include "core/step.h"

#include <utility>

using namespace zero_rt;

BatchScope::BatchScope(Step &step, const char *call) : step(&step), call(call) {
  if (step.batch.isOpen || step.device().isImmediate() ||
      step.program->beginBatch())
    this->step = nullptr;
  else
    step.batch.isOpen = true;
}

BatchScope::~BatchScope() { (void)end(ZERO_RT_OK); }

static zero_rt_status recordAll(Step &step) {
  for (int64_t event : std::exchange(step.batch.recorded, {}))
    ZERO_RT_TRY(step.device().record(&step.events[size_t(event)].signal));
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::settleBatch(Step &step) {
  if (!step.batch.isOpen)
    return ZERO_RT_OK;
  zero_rt_status launched = step.program->endBatch();
  zero_rt_status begun = step.program->beginBatch();
  ZERO_RT_TRY(launched ? launched : begun);
  return recordAll(step);
}

/// Gives one tensor back after its event.
static zero_rt_status giveBack(Step &step,
                               const ArrivalBatch::Release &release) {
  StreamEvent &event = step.events[size_t(release.event)];
  if (!release.timepoint)
    return event.isRecorded
               ? step.device().precede(release.stream, event.signal)
               : zero_rt_status(ZERO_RT_OK);
  if (!event.isRecorded || std::exchange(event.isMarked, true))
    return step.device().mark(release.timepoint);
  return step.device().mark(release.timepoint, event.signal);
}

static zero_rt_status giveBackAll(Step &step) {
  // Those that arrive in this call share a timepoint, or a stream.
  zero_rt_status status = ZERO_RT_OK;
  const ArrivalBatch::Release *shared = nullptr;
  for (const ArrivalBatch::Release &release : step.batch.releases)
    if (release.timepoint == step.batch.timepoint)
      shared = &release; // the last one
    else if (zero_rt_status failed = giveBack(step, release))
      status = failed;
  if (shared)
    if (zero_rt_status failed = giveBack(step, *shared))
      status = failed;
  return status;
}

zero_rt_status BatchScope::end(zero_rt_status status) {
  if (!step)
    return status;
  Step &mine = *std::exchange(step, nullptr);
  zero_rt_status launched = mine.program->endBatch();
  zero_rt_status recorded = recordAll(mine);
  // Tensors are given back also after an error, so that nobody waits for them.
  zero_rt_status given = giveBackAll(mine);
  mine.batch = {};
  if (status)
    return status;
  for (zero_rt_status each : {launched, recorded, given})
    status = status ? status : each;
  if (status)
    poisonStep(mine, call, status);
  return status;
}
