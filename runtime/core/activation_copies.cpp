//===- activation_copies.cpp - Copies of activations on the host ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages are in memory of the host. A GPU copies a tensor there before its
// send, and from there after its receive, on the streams of copies. The host
// waits for the copy of a send only, and so for the work on the caller's stream
// before it.
//
//===----------------------------------------------------------------------===//

#include "core/activations.h"
#include "core/step.h"

#include <cstring>

using namespace zero_rt;

/// Where hosts read and write messages.
static int32_t getHostSpace(const Step &step) {
  return step.device().isImmediate() ? ZERO_RT_SPACE_DEVICE
                                     : ZERO_RT_SPACE_HOST;
}

/// Memory for |bytes| of a message in |block|.
static zero_rt_status reserve(Step &step, int32_t space, int64_t bytes,
                              const char *name, Block &block) {
  if (block.data && block.bytes >= bytes)
    return ZERO_RT_OK;
  step.runtime->memory.release(block);
  return step.runtime->memory.allocate(space, ZERO_RT_ROLE_STAGING, bytes, name,
                                       block);
}

/// Whether the memory of |a| suits |bytes| better: the smallest block that is
/// large enough, or else the largest.
static bool isBetter(const Block &a, const Block &b, int64_t bytes) {
  bool fits = a.bytes >= bytes;
  if (fits != (b.bytes >= bytes))
    return fits;
  return fits ? a.bytes < b.bytes : a.bytes > b.bytes;
}

/// Finds memory of a message that was taken, or makes more. Therefore the
/// number of copies is the largest number of concurrent sends.
static zero_rt_status takeOutgoing(Step &step, int64_t bytes, const char *name,
                                   Outgoing *&out) {
  out = nullptr;
  for (Outgoing &old : step.activations.outgoing)
    if (old.message.isTaken && (!out || isBetter(old.block, out->block, bytes)))
      out = &old;
  if (!out) {
    out = &step.activations.outgoing.emplace_back();
    out->message.isTaken = true;
  }
  ZERO_RT_TRY(reserve(step, getHostSpace(step), bytes, name, out->block));
  out->message.data = out->block.data;
  out->message.bytes = bytes;
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::packExtents(Step &step,
                                    const std::vector<int64_t> &extents,
                                    const char *name, Outgoing *&out) {
  int64_t bytes = int64_t(extents.size() * sizeof(int64_t));
  ZERO_RT_TRY(takeOutgoing(step, bytes, name, out));
  std::memcpy(out->block.data, extents.data(), size_t(bytes));
  out->message.isTaken = false;
  return ZERO_RT_OK;
}

/// Copies on |to|, after the work on the caller's |stream|. |copied| passes
/// with the copy.
static zero_rt_status queueCopy(Step &step, Stream to, void *dst,
                                const void *src, int64_t bytes,
                                zero_rt_stream *stream,
                                zero_rt_timepoint &copied) {
  Device &device = step.device();
  Signal before = nullptr, after = nullptr;
  ZERO_RT_TRY(device.record(stream, &before));
  zero_rt_status status =
      step.on(int32_t(to), "activation", [&]() -> zero_rt_status {
        ZERO_RT_TRY(device.await(before));
        ZERO_RT_TRY(device.copy(dst, src, bytes));
        return device.record(&after);
      });
  device.dropSignal(before);
  if (status) {
    device.dropSignal(after);
    return status;
  }
  copied = ++step.runtime->timepoints;
  return device.mark(copied, after);
}

zero_rt_status zero_rt::packTensor(Step &step, const Payload &payload,
                                   Outgoing *&out) {
  ZERO_RT_TRY(takeOutgoing(step, payload.bytes, payload.activation, out));
  if (step.device().isImmediate()) {
    ZERO_RT_TRY(
        step.device().copy(out->block.data, payload.data, payload.bytes));
  } else if (payload.bytes) {
    zero_rt_timepoint copied = 0;
    ZERO_RT_TRY(queueCopy(step, Stream::ToHost, out->block.data, payload.data,
                          payload.bytes, payload.stream, copied));
    ZERO_RT_TRY(step.device().wait(copied));
  }
  out->message.isTaken = false;
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::takeCopy(Step &step, std::list<Copy> &copies,
                                 int32_t space, const Payload &payload,
                                 Copy *&out) {
  out = nullptr;
  for (Copy &old : copies) {
    bool hasPassed = false;
    ZERO_RT_TRY(step.device().hasPassed(old.usedUntil, hasPassed));
    if (hasPassed && !old.isHeld &&
        (!out || isBetter(old.block, out->block, payload.bytes)))
      out = &old;
  }
  if (!out)
    out = &copies.emplace_back();
  return reserve(step, space, payload.bytes, payload.activation, out->block);
}

zero_rt_status zero_rt::receiveTensor(
    Step &step, const Payload &payload,
    const std::function<zero_rt_status(void *, int64_t)> &receive) {
  Device &device = step.device();
  if (device.isImmediate() || payload.bytes == 0)
    return receive(payload.data, payload.bytes);
  Copy *copy = nullptr;
  ZERO_RT_TRY(takeCopy(step, step.activations.incoming, getHostSpace(step),
                       payload, copy));
  ZERO_RT_TRY(receive(copy->block.data, payload.bytes));
  ZERO_RT_TRY(queueCopy(step, Stream::ToDevice, payload.data, copy->block.data,
                        payload.bytes, payload.stream, copy->usedUntil));
  return device.precede(payload.stream, copy->usedUntil);
}

void zero_rt::releaseCopies(Step &step) {
  for (Outgoing &outgoing : step.activations.outgoing)
    step.runtime->memory.release(outgoing.block);
  // The release of memory of the host waits for queued work.
  for (Copy &incoming : step.activations.incoming)
    step.runtime->memory.release(incoming.block);
}
