//===- device.h - Where a rank's memory is and its kernels run --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device has streams. The work of one stream runs in the order of calls,
// possibly after the calls have returned. Calls queue work to the selected
// stream. Without `select` that is the compute stream. A stream waits for
// another stream only if a call says so. The caller of the runtime has streams
// of its own, which are a |zero_rt_stream|. On the host device all work is done
// when a call returns, and streams have no meaning.
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
  /// For each operand the address of the first element of |domain|.
  void *const *operands;
  int64_t numOperands;
  /// A segment table, whose segments are intersected with |domain|; or -1: the
  /// kernel runs over |domain| without scalars.
  int32_t table;
  Range domain; // in bucket coordinates
  /// The slot that gets the sum of a reducing kernel, or -1.
  int32_t sumSlot;
  /// Whether all operands are in host space. The CPU then runs the kernel.
  bool isOnHost;
};

/// A sum over ranks. |sources| has one array of |dtype| for each rank, in
/// order. Sums are computed in f64 for f64 and in f32 for all other types, and
/// are rounded once to |sumType|. With |accumulate| the rounded sum is added to
/// |dst|.
struct RankSum {
  int32_t dtype;
  int32_t sumType;
  const void *const *sources;
  int32_t ranks;
  void *dst; // may be one of the sources if the types are equal
  bool accumulate;
  int64_t elements;
};

/// The kernels and scalar programs of one step on a device. All of its calls
/// queue work.
class Program {
public:
  virtual ~Program() = default;
  /// Copies the slots to where launches on the host read them.
  virtual zero_rt_status copySlots() = 0;
  virtual zero_rt_status launch(const Launch &launch) = 0;
  virtual zero_rt_status runScalars(int32_t program) = 0;
  /// Sets a slot to a value of the host. Later programs and launches read it.
  virtual zero_rt_status setSlot(int64_t slot, double value) = 0;
  /// Queues the values that `setSlot` has set. Call it before slots are read or
  /// written by work that is neither a program nor a launch.
  virtual zero_rt_status writeSlots() = 0;
  /// Whether `setSlot` has set a value that is not queued yet.
  virtual bool hasUnwrittenSlots() const = 0;
  virtual zero_rt_status sum(const RankSum &sum) = 0;
  /// Work that is queued between these two calls may be launched together, as
  /// graphs.
  virtual zero_rt_status beginGraphs() = 0;
  virtual zero_rt_status endGraphs() = 0;
  /// Until `endBatch`, launches without a table may be held back, so that they
  /// are queued as one. They are queued before any other work of their stream,
  /// but for sets and `await`, which go ahead of them: a set must not touch the
  /// memory of these launches, which must be disjoint, too. `flushBatch` queues
  /// what is held back. It and `endBatch` return the first error of a launch
  /// that was held back.
  virtual zero_rt_status beginBatch() { return ZERO_RT_OK; }
  virtual zero_rt_status flushBatch() { return ZERO_RT_OK; }
  virtual zero_rt_status endBatch() { return ZERO_RT_OK; }
};

/// A point in a stream, for which other streams can wait.
using Signal = void *;

/// The streams of a device. Numbers are those of zero_rt_step_stream.
enum class Stream {
  Compute,
  Collective, // collectives
  ToHost,     // copies to the memory of the host
  Host,       // kernels on the CPU
  ToDevice    // copies from the memory of the host
};
constexpr int numStreams = 5;

class Device {
public:
  virtual ~Device() = default;

  /// "host" or "cuda".
  virtual const char *name() const = 0;
  /// Whether work is done when the call that queues it returns.
  virtual bool isImmediate() const = 0;
  /// Whether memory of the process can be used in place of `allocate`.
  virtual bool usesHostMemory() const { return false; }

  /// Makes this device the current one of the calling thread, until `leave`.
  /// One thread at a time uses a device. That thread may call `enter` again.
  virtual zero_rt_status enter() = 0;
  /// The same for a thread of the runtime. Returns false if another thread uses
  /// the device, or on an error.
  virtual bool tryEnter() = 0;
  virtual void leave() = 0;

  /// Lets this device and |other|, which has the same kind, access each other's
  /// memory. Any thread may call this. Errors: unsupported.
  virtual zero_rt_status share(Device &other) = 0;

  /// Memory in |space|, aligned to 64 bytes, with unspecified contents; null if
  /// there is none. All devices can read host memory. Both calls are queued, so
  /// memory that was released may be allocated again at once.
  virtual void *allocate(int32_t space, int64_t bytes) = 0;
  virtual void release(int32_t space, void *data) = 0;

  /// Queues a copy. The memory may be of any space, or of the caller.
  virtual zero_rt_status copy(void *dst, const void *src, int64_t bytes) = 0;
  /// Queues: sets |count| elements of |size| bytes (1, 2, 4 or 8) to |bits|.
  virtual zero_rt_status set(void *data, uint64_t bits, int64_t size,
                             int64_t count) = 0;

  /// Waits until all queued work is done.
  virtual zero_rt_status finish() = 0;
  /// Waits until all queued work is done, and returns the contents of |data|.
  /// They are valid until the next call of this device.
  virtual zero_rt_status look(const void *data, int64_t bytes,
                              const void **out) = 0;

  /// Later work of this device starts after the work on |stream|.
  virtual zero_rt_status follow(zero_rt_stream *stream) = 0;
  /// Later work on |stream| starts after the queued work of this device.
  virtual zero_rt_status precede(zero_rt_stream *stream) = 0;

  /// |timepoint| passes when all work queued so far is done. If the device
  /// cannot do that, the call waits for the work.
  virtual zero_rt_status mark(zero_rt_timepoint timepoint) = 0;
  /// |timepoint| passes with the last record of |end|. The device owns |end|
  /// from then on: |end| may be waited for, and is neither recorded nor
  /// dropped.
  virtual zero_rt_status mark(zero_rt_timepoint timepoint, Signal end) = 0;
  /// Waits until |timepoint|, which was marked, has passed.
  virtual zero_rt_status wait(zero_rt_timepoint timepoint) = 0;
  /// Whether |timepoint|, which was marked, has passed. Does not wait.
  virtual zero_rt_status hasPassed(zero_rt_timepoint timepoint, bool &out) = 0;
  /// Later work on |stream| starts after |timepoint|.
  virtual zero_rt_status precede(zero_rt_stream *stream,
                                 zero_rt_timepoint timepoint) = 0;

  /// Returns a signal for all work queued so far. It is valid until the fourth
  /// signal after it.
  virtual zero_rt_status signal(Signal *out) = 0;
  /// Later work of this device starts after |signal|, which may be of another
  /// rank's device of the same kind.
  virtual zero_rt_status await(Signal signal) = 0;
  /// Later work on |stream| starts after |signal|, which is of this device.
  virtual zero_rt_status precede(zero_rt_stream *stream, Signal signal) = 0;

  /// The selected stream, on which the work of earlier calls is queued. Null on
  /// a device without streams.
  virtual zero_rt_stream *getQueue() { return nullptr; }
  /// Later calls queue work to |stream|.
  virtual void select(Stream stream) = 0;
  /// Makes |end| a signal for all work queued so far on the selected stream.
  /// |end| is null the first time, and is reused from then on.
  virtual zero_rt_status record(Signal *end) = 0;
  /// The same for the work on |stream|.
  virtual zero_rt_status record(zero_rt_stream *stream, Signal *end) = 0;
  /// Gives a signal of `record` back. It may be null.
  virtual void dropSignal(Signal end) = 0;

  /// Returns the interconnect with devices of other processes, which lives as
  /// long as the device. |out| is null if the hosts exchange the data of this
  /// device. Errors: unsupported (the interconnect lacks something).
  virtual zero_rt_status getInterconnect(Interconnect **out) = 0;

  /// Loads the code of |library| for this device. |slots| are its scalar slots.
  /// Errors: unsupported (the library has no code for this device).
  virtual zero_rt_status load(const zero_rt_library &library, double *slots,
                              std::unique_ptr<Program> *out) = 0;
};

/// Runs |body| with |device| as the current device of this thread, and stops
/// exceptions.
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
