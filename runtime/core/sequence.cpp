//===- sequence.cpp - Closes buckets in order -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/sequence.h"

#include "core/numeric.h"
#include "core/preconditions.h"
#include "core/protocol.h"
#include "core/status.h"
#include "core/step.h"
#include "core/units.h"

#include <algorithm>
#include <utility>

using namespace zero_rt;

static const zero_rt_sequence_row &
sequenceOf(const Step &step, const zero_rt_transition_row &row) {
  return step.library->sequences[row.sequence];
}

static const zero_rt_sequence_entry &
entryAt(const Step &step, const zero_rt_transition_row &row, int64_t position) {
  return step.library->sequence_entries[sequenceOf(step, row).first + position];
}

void zero_rt::beginSequence(Step &step) {
  const zero_rt_library &library = *step.library;
  SequenceState &state = step.sequence;
  dropWaiting(step); // gradient views that were never declared ready
  state.closed = 0;
  state.outstanding.assign(size_t(library.num_buckets), library.num_units > 0);
  state.resharded.assign(size_t(library.num_units), false);
  for (int64_t p = 0; p < library.num_parameters; ++p)
    if (int64_t bucket = library.parameters[p].bucket; bucket >= 0)
      state.outstanding[size_t(bucket)] +=
          std::max<int64_t>(library.parameters[p].uses, 1);
  state.waitingOf.assign(size_t(library.num_parameters), 0);
}

bool zero_rt::isBucketOpen(const Step &step, const zero_rt_transition_row &row,
                           int64_t bucket) {
  if (row.sequence < 0)
    return true;
  const BucketOrder &order = step.index.orderOf(row.sequence);
  int64_t position = order.position[size_t(bucket)];
  int64_t closed = step.sequence.closed;
  return position >= closed && order.before[size_t(position)] < closed;
}

void zero_rt::waitForBucket(Step &step, WaitingGradient gradient) {
  ++step.sequence.waitingOf[size_t(gradient.parameter)];
  step.sequence.waiting.push_back(gradient);
}

void zero_rt::releaseWaiting(Step &step, WaitingGradient &gradient) {
  if (gradient.delivered) {
    // The gradient is dropped. If the caller wrote it to a view, the memory is
    // free only then.
    if (gradient.copy.data)
      (void)step.device().await(gradient.delivered);
    step.device().dropSignal(std::exchange(gradient.delivered, nullptr));
  }
  step.runtime->memory.release(gradient.copy);
  // If this fails, so do the next call and a wait for the timepoint.
  if (step.runtime->unreleased.erase(gradient.release))
    (void)step.device().mark(gradient.release);
}

/// One piece less of the gradient of |parameter| is outstanding.
static void countPacked(Step &step, int32_t parameter) {
  const zero_rt_parameter_row &row = step.library->parameters[parameter];
  if (row.uses != ZERO_RT_USES_ANY)
    --step.sequence.outstanding[size_t(row.bucket)];
}

/// Packs the gradients that waited for |bucket|.
static zero_rt_status packWaiting(Step &step, int64_t bucket,
                                  const char *call) {
  const zero_rt_transition_row &arrive =
      *step.index.transition(step.state, ZERO_RT_EVENT_ARRIVE);
  std::vector<WaitingGradient> &waiting = step.sequence.waiting;
  auto isOfBucket = [&](const WaitingGradient &gradient) {
    return step.library->parameters[gradient.parameter].bucket == bucket;
  };
  zero_rt_status status = ZERO_RT_OK;
  for (WaitingGradient &gradient : waiting) {
    if (!isOfBucket(gradient))
      continue;
    if (!status && (status = checkUntouched(step, gradient)))
      poisonStep(step, call, status);
    if (!status)
      status = runTransition(
          step, arrive,
          {ZERO_RT_EVENT_ARRIVE, gradient.parameter, &gradient.tensor}, call,
          {CallerStream::Delivery::Earlier, nullptr, &gradient.delivered,
           gradient.release != 0, /*unitWaits=*/nullptr, gradient.release});
    step.window.arrive(gradient.parameter);
    countPacked(step, gradient.parameter);
    --step.sequence.waitingOf[size_t(gradient.parameter)];
  }
  // Not before all are packed: a release queues what a batch holds back.
  for (WaitingGradient &gradient : waiting)
    if (isOfBucket(gradient))
      releaseWaiting(step, gradient);
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(), isOfBucket),
                waiting.end());
  return status;
}

/// Closes the next bucket, and opens the one that waits for its memory.
static zero_rt_status closeBucket(Step &step, const zero_rt_transition_row &row,
                                  const char *call) {
  const zero_rt_sequence_row &sequence = sequenceOf(step, row);
  const zero_rt_sequence_entry &entry =
      entryAt(step, row, step.sequence.closed);
  ZERO_RT_TRY(settleBatch(step));
  ZERO_RT_TRY(
      runHandler(step, entry.handler, {int32_t(row.event), -1, nullptr}, call));
  int64_t buffer = step.library->buckets[entry.bucket].gradient_buffer;
  if (step.runtime->poison && sequence.scratch &&
      step.buffers[size_t(buffer)].data) {
    // The contents of the buffer are lost. The pattern shows a read that still
    // happens.
    ZERO_RT_TRY(step.waitForAll());
    ZERO_RT_TRY(step.poison(step.library->buffers[buffer].dtype,
                            step.buffers[size_t(buffer)].data,
                            step.held(buffer).size()));
  }
  int64_t opened =
      step.index.orderOf(row.sequence).behind[size_t(step.sequence.closed++)];
  return opened >= 0
             ? packWaiting(step, entryAt(step, row, opened).bucket, call)
             : ZERO_RT_OK;
}

/// Closes the complete buckets at the beginning of the remaining sequence.
static zero_rt_status
closeComplete(Step &step, const zero_rt_transition_row &row, const char *call) {
  while (step.sequence.closed < sequenceOf(step, row).count) {
    int64_t bucket = entryAt(step, row, step.sequence.closed).bucket;
    if (step.sequence.outstanding[size_t(bucket)] > 0)
      break;
    ZERO_RT_TRY(closeBucket(step, row, call));
  }
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::advanceSequence(Step &step,
                                        const zero_rt_transition_row &row,
                                        int32_t parameter, const char *call) {
  if (row.sequence < 0)
    return ZERO_RT_OK;
  countPacked(step, parameter);
  return closeComplete(step, row, call);
}

zero_rt_status zero_rt::packAndAdvance(Step &step,
                                       const zero_rt_transition_row &row,
                                       int64_t bucket, const char *call) {
  ZERO_RT_TRY(packWaiting(step, bucket, call));
  return row.sequence < 0 ? ZERO_RT_OK : closeComplete(step, row, call);
}

zero_rt_status zero_rt::arriveAll(Step &step,
                                  std::vector<WaitingGradient> &gradients,
                                  const char *call) {
  const zero_rt_transition_row *row;
  ZERO_RT_TRY(findTransition(step, ZERO_RT_EVENT_ARRIVE, call, &row));
  std::vector<int64_t> buckets;
  for (const WaitingGradient &gradient : gradients)
    buckets.push_back(step.library->parameters[gradient.parameter].bucket);
  std::vector<WaitingGradient> &waiting = step.sequence.waiting;
  waiting.reserve(waiting.size() + gradients.size());
  // Nothing throws until all gradients have their new owner.
  for (const WaitingGradient &gradient : gradients)
    waitForBucket(step, gradient);
  gradients.clear();
  for (int64_t bucket : buckets)
    if (isBucketOpen(step, *row, bucket))
      ZERO_RT_TRY(packAndAdvance(step, *row, bucket, call));
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::closeUnit(Step &step, const zero_rt_transition_row &row,
                                  int64_t unit, const char *call) {
  if (row.sequence < 0)
    return ZERO_RT_OK;
  step.sequence.resharded[size_t(unit)] = true;
  // As in finishSequence: a view that is not ready holds no gradient.
  for (auto [parameter, stream] : step.sequence.writers)
    if (unitOf(*step.library, step.library->parameters[parameter].bucket) ==
        unit)
      ZERO_RT_TRY(step.device().follow(stream));
  for (int64_t b = 0; b < step.library->num_buckets; ++b)
    if (unitOf(*step.library, b) == unit)
      step.sequence.outstanding[size_t(b)] = 0;
  return closeComplete(step, row, call);
}

zero_rt_status zero_rt::finishSequence(Step &step,
                                       const zero_rt_transition_row &row,
                                       const char *call) {
  if (row.sequence < 0)
    return ZERO_RT_OK;
  // A producer that still writes to a gradient view would write to memory that
  // is released here.
  for (auto [parameter, stream] : step.sequence.writers)
    ZERO_RT_TRY(step.device().follow(stream));
  while (step.sequence.closed < sequenceOf(step, row).count)
    ZERO_RT_TRY(closeBucket(step, row, call));
  return ZERO_RT_OK;
}

void zero_rt::dropWaiting(Step &step) {
  for (auto [parameter, stream] : step.sequence.writers)
    (void)step.device().follow(stream);
  step.sequence.writers.clear();
  for (auto *list : {&step.sequence.waiting, &step.sequence.handedOut}) {
    for (WaitingGradient &gradient : *list)
      releaseWaiting(step, gradient);
    list->clear();
  }
}
