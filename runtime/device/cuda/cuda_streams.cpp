//===- cuda_streams.cpp - Streams, timepoints and signals of a GPU --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_device.h"

#include "core/pause.h"
#include "core/status.h"

#include <cassert>
#include <iterator>

using namespace zero_rt;

/// A caller's stream; null is the default one.
static CUstream cudaStream(zero_rt_stream *stream) {
  return reinterpret_cast<CUstream>(stream);
}

zero_rt_status CudaDevice::create(CUevent *out) {
  ZERO_RT_CUDA(driver, EventCreate, out, eventDisableTiming);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::follow(zero_rt_stream *other) {
  ZERO_RT_TRY(flush());
  ZERO_RT_CUDA(driver, EventRecord, passing, cudaStream(other));
  ZERO_RT_CUDA(driver, StreamWaitEvent, stream, passing, 0);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::precede(zero_rt_stream *other) {
  ZERO_RT_TRY(flush());
  ZERO_RT_CUDA(driver, EventRecord, passing, stream);
  ZERO_RT_CUDA(driver, StreamWaitEvent, cudaStream(other), passing, 0);
  return ZERO_RT_OK;
}

/// An event that is not in use. Events of passed timepoints are not in use.
zero_rt_status CudaDevice::takeEvent(CUevent *out) {
  while (!marked.empty()) {
    auto oldest = events.find(marked.front());
    assert(oldest != events.end() && "each mark has an event");
    CUresult result = driver.EventQuery(oldest->second);
    if (result == cudaErrorNotReady)
      break;
    ZERO_RT_TRY(check(driver, result, "cuEventQuery"));
    spare.push_back(oldest->second);
    events.erase(oldest);
    marked.pop_front();
  }
  if (spare.empty()) {
    spare.reserve(++numTaken);
    return create(out);
  }
  *out = spare.back();
  spare.pop_back();
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::mark(zero_rt_timepoint timepoint) {
  CUevent event = nullptr;
  zero_rt_status status = flush();
  if (!status)
    status = takeEvent(&event);
  if (!status) {
    status = check(driver, driver.EventRecord(event, stream), "cuEventRecord");
    if (status)
      spare.push_back(event);
  }
  if (status) {
    // A timepoint without an event passes now, or never.
    hasLostTimepoint |= finish() != ZERO_RT_OK;
    return hasLostTimepoint ? status : zero_rt_status(ZERO_RT_OK);
  }
  events[timepoint] = event;
  marked.push_back(timepoint);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::mark(zero_rt_timepoint timepoint, Signal end) {
  marked.push_back(timepoint);
  events[timepoint] = static_cast<CUevent>(end);
  return ZERO_RT_OK;
}

CUevent CudaDevice::findEvent(zero_rt_timepoint timepoint) const {
  auto found = events.find(timepoint);
  return found == events.end() ? nullptr : found->second;
}

/// Waits until |event| has passed. Returns an error if the watch gives up.
zero_rt_status CudaDevice::waitFor(CUevent event) {
  ZERO_RT_TRY(flush());
  for (Pause pause; watch; pause()) {
    CUresult result = driver.EventQuery(event);
    ZERO_RT_TRY(watch->look());
    if (result != cudaErrorNotReady)
      return check(driver, result, "cuEventQuery");
  }
  ZERO_RT_CUDA(driver, EventSynchronize, event);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::wait(zero_rt_timepoint timepoint) {
  if (CUevent event = findEvent(timepoint))
    ZERO_RT_TRY(waitFor(event));
  else if (hasLostTimepoint)
    return finish();
  return checkHost();
}

zero_rt_status CudaDevice::hasPassed(zero_rt_timepoint timepoint, bool &out) {
  // Work that is not queued yet would never pass.
  ZERO_RT_TRY(flush());
  CUevent event = findEvent(timepoint);
  if (!event && hasLostTimepoint)
    ZERO_RT_TRY(finish());
  CUresult result = event ? driver.EventQuery(event) : CUresult(0);
  out = result != cudaErrorNotReady;
  return out ? check(driver, result, "cuEventQuery")
             : zero_rt_status(ZERO_RT_OK);
}

zero_rt_status CudaDevice::precede(zero_rt_stream *other,
                                   zero_rt_timepoint timepoint) {
  if (CUevent event = findEvent(timepoint))
    ZERO_RT_CUDA(driver, StreamWaitEvent, cudaStream(other), event, 0);
  else if (hasLostTimepoint)
    return finish();
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::signal(Signal *out) {
  ZERO_RT_TRY(flushSelected());
  CUevent event = signals[nextSignal++ % std::size(signals)];
  ZERO_RT_CUDA(driver, EventRecord, event, stream);
  *out = event;
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::await(Signal signal) {
  // What is held back may wait for |signal|, too: it is recorded already.
  zero_rt_status flushed =
      isForGraph() ? flushGraph() : zero_rt_status(ZERO_RT_OK);
  auto event = static_cast<CUevent>(signal);
  CUresult result = driver.StreamWaitEvent(stream, event, 0);
  // Other ranks may read the memory until then. A rank that fails releases its
  // memory.
  if (result)
    (void)driver.EventSynchronize(event);
  return flushed ? flushed : check(driver, result, "cuStreamWaitEvent");
}

zero_rt_status CudaDevice::precede(zero_rt_stream *other, Signal signal) {
  ZERO_RT_CUDA(driver, StreamWaitEvent, cudaStream(other),
               static_cast<CUevent>(signal), 0);
  return ZERO_RT_OK;
}

void CudaDevice::select(Stream to) {
  selected = to;
  stream = streams[size_t(to)];
}

zero_rt_status CudaDevice::record(Signal *end) {
  ZERO_RT_TRY(flushSelected());
  return recordOn(stream, end);
}

zero_rt_status CudaDevice::record(zero_rt_stream *other, Signal *end) {
  return recordOn(cudaStream(other), end);
}

zero_rt_status CudaDevice::recordOn(CUstream which, Signal *end) {
  auto event = static_cast<CUevent>(*end);
  if (!event)
    ZERO_RT_TRY(takeEvent(&event));
  *end = event;
  ZERO_RT_CUDA(driver, EventRecord, event, which);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::keepShort() {
  // Each launch queues several items, and a queue of the driver holds about a
  // thousand.
  constexpr uint64_t distance = 64;
  if (!watch || ++launches % distance != 0)
    return ZERO_RT_OK;
  CUevent event = milestones[launches / distance % std::size(milestones)];
  if (launches / distance > std::size(milestones))
    ZERO_RT_TRY(waitFor(event));
  ZERO_RT_CUDA(driver, EventRecord, event, stream);
  return ZERO_RT_OK;
}

void CudaDevice::dropSignal(Signal end) {
  if (end)
    spare.push_back(static_cast<CUevent>(end));
}
