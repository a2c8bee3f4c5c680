//===- schedule_calls.cpp - Records and waits, as handlers say ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library gives the records of events and the waits for them, those of the
// caller's stream included. The proof has shown that they are enough, so the
// runtime adds none.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/status.h"
#include "core/step.h"

#include <algorithm>
#include <utility>

using namespace zero_rt;

zero_rt_status Step::checkStream(int32_t stream, const char *call) const {
  if (stream >= 0 && stream < ZERO_RT_STREAM_CALLER)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INTERNAL, "%s: stream %d is out of range", call, stream);
}

static zero_rt_status checkEvent(const Step &step, const char *call,
                                 int32_t event) {
  if (event >= 0 && event < step.library->num_stream_events)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INTERNAL, "%s: event %d is out of range", call, event);
}

static bool has(const std::vector<int64_t> &events, int64_t event) {
  return std::find(events.begin(), events.end(), event) != events.end();
}

zero_rt_status Step::wait(int64_t event, Stream stream) {
  if (has(batch.recorded, event))
    ZERO_RT_TRY(settleBatch(*this));
  StreamEvent &recorded = events[size_t(event)];
  uint32_t bit = 1u << unsigned(stream);
  // A stream that waits already need not wait again.
  if (!recorded.isRecorded || (recorded.followers & bit))
    return ZERO_RT_OK;
  device().select(stream);
  zero_rt_status status = device().await(recorded.signal);
  device().select(Stream::Compute);
  if (!status)
    recorded.followers |= bit;
  return status;
}

zero_rt_status Step::giveBack(int64_t event) {
  StreamEvent &recorded = events[size_t(event)];
  if (caller.unitWaits) {
    caller.unitWaits->push_back(event);
    return ZERO_RT_OK;
  }
  if (!caller.isLent)
    return ZERO_RT_OK;
  caller.isLent = false;
  if (batch.isOpen)
    batch.releases.push_back({event, caller.stream, caller.release});
  runtime->unreleased.erase(caller.release);
  if (batch.isOpen)
    return ZERO_RT_OK;
  if (!recorded.isRecorded) // the event has passed
    return caller.release ? device().mark(caller.release)
                          : zero_rt_status(ZERO_RT_OK);
  if (!caller.release)
    return device().precede(caller.stream, recorded.signal);
  ZERO_RT_TRY(device().mark(caller.release, recorded.signal));
  recorded.isMarked = true;
  return ZERO_RT_OK;
}

zero_rt_status Step::waitWritable(int64_t bucket) {
  const zero_rt_bucket_row &row = library->buckets[bucket];
  const int64_t *list = library->event_lists + row.first_writable;
  for (int64_t i = 0; i < row.num_writable; ++i)
    ZERO_RT_TRY(wait(list[i], Stream::Compute));
  return ZERO_RT_OK;
}

zero_rt_status Step::lendParameters(int64_t bucket, zero_rt_stream *stream) {
  const zero_rt_bucket_row &row = library->buckets[bucket];
  const int64_t *list = library->event_lists + row.first_readable;
  bool isWritten = false;
  for (int64_t i = 0; i < row.num_readable; ++i)
    if (const StreamEvent &event = events[size_t(list[i])]; event.isRecorded) {
      ZERO_RT_TRY(device().precede(stream, event.signal));
      isWritten = true;
    }
  // No step has written them yet, or all writes are on the compute stream.
  return isWritten ? zero_rt_status(ZERO_RT_OK) : device().precede(stream);
}

// The schedule counts slots as written by the call that sets them. A step that
// lowering made reads them first on the compute stream, so no wait is needed
// here.
zero_rt_status Step::writeSlotsBefore(Stream stream) {
  if (!program->hasUnwrittenSlots())
    return ZERO_RT_OK;
  ZERO_RT_TRY(program->writeSlots());
  if (stream == Stream::Compute)
    return ZERO_RT_OK;
  ZERO_RT_TRY(device().record(&slotsWritten));
  device().select(stream);
  zero_rt_status status = device().await(slotsWritten);
  device().select(Stream::Compute);
  return status;
}

zero_rt_status Step::waitForAll() {
  for (int64_t e = 0; e < library->num_stream_events; ++e)
    if (library->stream_events[e].stream != ZERO_RT_STREAM_COMPUTE &&
        library->stream_events[e].stream != ZERO_RT_STREAM_CALLER)
      ZERO_RT_TRY(wait(e, Stream::Compute));
  return ZERO_RT_OK;
}

/// Records |event| on the stream of the caller.
static zero_rt_status recordCaller(Step &step, int64_t number) {
  StreamEvent &event = step.events[size_t(number)];
  const CallerStream &caller = step.caller;
  switch (caller.delivery) {
  case CallerStream::Delivery::None:
    break;
  case CallerStream::Delivery::Now:
    event.followers = 0;
    ZERO_RT_TRY(step.device().record(caller.stream, &event.signal));
    event.isRecorded = true;
    if (step.batch.isOpen)
      step.batch.followed.push_back(number);
    return ZERO_RT_OK;
  case CallerStream::Delivery::Earlier:
    event.followers = 0;
    step.batch.followed.clear();
    event.isRecorded = *caller.delivered != nullptr;
    if (event.isRecorded) {
      step.device().dropSignal(event.signal);
      event.signal = std::exchange(*caller.delivered, nullptr);
    }
    return ZERO_RT_OK;
  }
  return fail(ZERO_RT_INTERNAL, "record: the call has no stream of the caller");
}

zero_rt_status calls::record(Step *step, int32_t event) {
  ZERO_RT_TRY(checkEvent(*step, "record", event));
  StreamEvent &recorded = step->events[size_t(event)];
  if (std::exchange(recorded.isMarked, false))
    recorded.signal = nullptr;
  int64_t stream = step->library->stream_events[event].stream;
  CallerStream::Delivery delivery = step->caller.delivery;
  ArrivalBatch &batch = step->batch;
  if (stream == ZERO_RT_STREAM_CALLER) {
    bool isFollowed =
        delivery == CallerStream::Delivery::Now && has(batch.followed, event);
    return isFollowed ? zero_rt_status(ZERO_RT_OK) : recordCaller(*step, event);
  }
  recorded.followers = 0;
  if (batch.isOpen && stream == ZERO_RT_STREAM_COMPUTE &&
      delivery != CallerStream::Delivery::None) {
    if (!has(batch.recorded, event))
      batch.recorded.push_back(event);
    return ZERO_RT_OK;
  }
  ZERO_RT_TRY(step->on(int32_t(stream), "record", [&] {
    return step->device().record(&recorded.signal);
  }));
  recorded.isRecorded = true;
  return ZERO_RT_OK;
}

zero_rt_status calls::wait(Step *step, int32_t event, int32_t stream) {
  ZERO_RT_TRY(checkEvent(*step, "wait", event));
  if (stream == ZERO_RT_STREAM_CALLER)
    return step->giveBack(event);
  ZERO_RT_TRY(step->checkStream(stream, "wait"));
  return step->wait(event, Stream(stream));
}

zero_rt_status calls::wait_writable(Step *step, const zero_rt_event *event) {
  if (!event || event->event != ZERO_RT_EVENT_ARRIVE)
    return fail(ZERO_RT_INTERNAL, "wait_writable: not in an arrive handler");
  ZERO_RT_TRY(checkParameter(*step, event->parameter));
  return step->waitWritable(step->library->parameters[event->parameter].bucket);
}

zero_rt_status calls::copy_scalars(Step *step) {
  return step->program->copySlots();
}
