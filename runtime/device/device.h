//===- device.h - Where a rank's memory is and its kernels run --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device has streams: what is queued to one runs in the order of calls, and
// perhaps after they have returned. What is queued goes to the selected stream,
// which is the compute stream where nothing else is said. A stream waits for
// another one only where it is told to. The caller of the runtime has streams
// of its own. On the host device everything is done at once, and streams mean
// nothing.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_DEVICE_H
#define ZERO_RT_DEVICE_DEVICE_H

#include "core/localize.h"
#include "core/status.h"
#include "device/interconnect.h"

#include <memory>

namespace zero_rt {

/// One launch of a kernel.
struct Launch {
  int32_t kernel;
  /// Of the first element of |domain|.
  void *const *operands;
  int64_t numOperands;
  /// A segment table, of which only what is in |domain| runs; or -1: all of it,
  /// without scalars.
  int32_t table;
  Range domain; // in bucket coordinates
  /// The slot that gets the sum of a reducing kernel, or -1.
  int32_t sumSlot;
  /// Whether all operands are in the space of the host, and so the processor
  /// runs it.
  bool isOnHost;
};

/// A sum over ranks: |sources| are one array of |dtype| for each, in order.
/// Sums are taken in f64 for f64 and in f32 for all others, rounded once to
/// |sumType|; with |accumulate| that is then added to what |dst| holds.
struct RankSum {
  int32_t dtype;
  int32_t sumType;
  const void *const *sources;
  int32_t ranks;
  void *dst; // may be one of the sources if the types are one
  bool accumulate;
  int64_t elements;
};

/// The kernels and scalar programs of one step on a device. Queued.
class Program {
public:
  virtual ~Program() = default;
  /// Copies the slots to where launches on the host read them.
  virtual zero_rt_status copySlots() = 0;
  virtual zero_rt_status launch(const Launch &launch) = 0;
  virtual zero_rt_status runScalars(int32_t program) = 0;
  /// What the host has for a slot. Programs and launches find it there.
  virtual zero_rt_status setSlot(int64_t slot, double value) = 0;
  /// Comes before slots are read or written in the queue by who is neither.
  virtual zero_rt_status writeSlots() = 0;
  /// Whether the host has a slot that is not written yet.
  virtual bool hasUnwrittenSlots() const = 0;
  virtual zero_rt_status sum(const RankSum &sum) = 0;
  /// What is queued between these two may be started together, where nothing
  /// stands between.
  virtual zero_rt_status beginGraphs() = 0;
  virtual zero_rt_status endGraphs() = 0;
};

/// Tells other queues how far one has come.
using Signal = void *;

/// The streams of a device. Numbers are those of zero_rt_step_stream.
enum class Stream {
  Compute,
  Collective, // what ranks do together
  ToHost,     // copies to the memory of the host
  Host,       // kernels on the processor
  ToDevice    // copies from there
};
constexpr int numStreams = 5;

class Device {
public:
  virtual ~Device() = default;

  /// "host" or "cuda".
  virtual const char *name() const = 0;
  /// Whether what is queued is done when the call returns.
  virtual bool isImmediate() const = 0;

  /// Makes the device that of the calling thread, until `leave`. A queue has
  /// one thread at a time, which may enter again.
  virtual zero_rt_status enter() = 0;
  /// The same for a thread of the runtime's own, if no other is there; false if
  /// it cannot.
  virtual bool tryEnter() = 0;
  virtual void leave() = 0;

  /// Lets this device and |other|, of one kind, use each other's memory. Comes
  /// from any thread. Errors: unsupported.
  virtual zero_rt_status share(Device &other) = 0;

  /// Memory in |space|, with unspecified contents and aligned to 64 bytes; null
  /// where there is none. Host memory can be read by all devices. Queued: what
  /// was released may come back at once.
  virtual void *allocate(int32_t space, int64_t bytes) = 0;
  virtual void release(int32_t space, void *data) = 0;

  /// Queued. Memory of any space, or of the caller.
  virtual zero_rt_status copy(void *dst, const void *src, int64_t bytes) = 0;
  /// Sets |count| elements of |size| bytes (1, 2, 4 or 8) to |bits|. Queued.
  virtual zero_rt_status set(void *data, uint64_t bits, int64_t size,
                             int64_t count) = 0;

  /// Waits until all is done.
  virtual zero_rt_status finish() = 0;
  /// Waits until all is done and shows what is at |data| then, until the next
  /// call of this device.
  virtual zero_rt_status look(const void *data, int64_t bytes,
                              const void **out) = 0;

  /// What is queued from now on comes after what is on |stream|.
  virtual zero_rt_status follow(zero_rt_stream *stream) = 0;
  /// What comes to |stream| from now on comes after what is queued.
  virtual zero_rt_status precede(zero_rt_stream *stream) = 0;

  /// |timepoint| passes when all is done that is queued now. Where that cannot
  /// be arranged, waits for it.
  virtual zero_rt_status mark(zero_rt_timepoint timepoint) = 0;
  /// Waits for a timepoint that was marked.
  virtual zero_rt_status wait(zero_rt_timepoint timepoint) = 0;
  /// What comes to |stream| from now on comes after |timepoint|.
  virtual zero_rt_status precede(zero_rt_stream *stream,
                                 zero_rt_timepoint timepoint) = 0;

  /// A signal for all that is queued now. It is good until the fourth one after
  /// it.
  virtual zero_rt_status signal(Signal *out) = 0;
  /// What is queued from now on comes after |signal|, of any rank's device of
  /// the same kind.
  virtual zero_rt_status await(Signal signal) = 0;
  /// What comes to |stream| from now on comes after |signal|, of this device.
  virtual zero_rt_status precede(zero_rt_stream *stream, Signal signal) = 0;

  /// What is queued from now on goes to |stream|.
  virtual void select(Stream stream) = 0;
  /// |end| is a signal for all that is queued now, where things go to now: null
  /// the first time, and then always the same.
  virtual zero_rt_status record(Signal *end) = 0;
  /// Gives back what `record` made.
  virtual void dropSignal(Signal end) = 0;

  /// How this device reaches those of other processes; |out| is null where that
  /// is for their hosts to do. Errors: unsupported (something is missing for
  /// it). It lives as long as the device.
  virtual zero_rt_status getInterconnect(Interconnect **out) = 0;

  /// Prepares what |library| has for this device. |slots| are its scalar slots.
  /// Errors: unsupported (it has nothing for it).
  virtual zero_rt_status load(const zero_rt_library &library, double *slots,
                              std::unique_ptr<Program> *out) = 0;
};

/// Runs |body| with |device| as that of this thread, and stops exceptions.
template <typename Body>
zero_rt_status onDevice(Device &device, const char *name,
                        Body &&body) noexcept {
  ZERO_RT_TRY(device.enter());
  zero_rt_status status = guarded(name, body);
  device.leave();
  return status;
}

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_DEVICE_H
