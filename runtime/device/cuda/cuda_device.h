//===- cuda_device.h - A GPU as a device ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The streams of a device are streams in the primary context of the GPU, which
// is also that of the CUDA runtime and of frameworks. Memory is allocated in
// the order of streams: released memory may be allocated again without waiting.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_CUDA_DEVICE_H
#define ZERO_RT_DEVICE_CUDA_CUDA_DEVICE_H

#include "core/thread_pool.h"
#include "device/cuda/cuda_graphs.h"
#include "device/cuda/driver.h"
#include "device/cuda/nccl_fabric.h"
#include "device/device.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace zero_rt {

/// Launches that are held back; see Program::beginBatch.
class HeldLaunches {
public:
  /// Queues them.
  virtual zero_rt_status launchHeld() = 0;

protected:
  ~HeldLaunches() = default;
};

class CudaDevice final : public Device {
public:
  /// Uses GPU |ordinal|. Errors: unsupported (no driver, no such GPU),
  /// device_failed. |threads| threads run kernels on the host. Throws what
  /// std::thread throws. |graphs|: launches work as graphs where possible.
  static zero_rt_status create(int32_t ordinal, int32_t threads, bool graphs,
                               const LentNccl &lent,
                               std::unique_ptr<Device> *out);
  ~CudaDevice() override;

  const char *name() const override { return label.c_str(); }
  bool isImmediate() const override { return false; }
  zero_rt_status enter() override;
  bool tryEnter() override;
  void leave() override;

  zero_rt_status share(Device &other) override;
  void *allocate(int32_t space, int64_t bytes) override;
  void release(int32_t space, void *data) override;
  zero_rt_status copy(void *dst, const void *src, int64_t bytes) override;
  zero_rt_status set(void *data, uint64_t bits, int64_t size,
                     int64_t count) override;
  zero_rt_status finish() override;
  zero_rt_status look(const void *data, int64_t bytes,
                      const void **out) override;

  zero_rt_status follow(zero_rt_stream *other) override;
  zero_rt_status precede(zero_rt_stream *other) override;
  zero_rt_status mark(zero_rt_timepoint timepoint) override;
  zero_rt_status mark(zero_rt_timepoint timepoint, Signal end) override;
  zero_rt_status wait(zero_rt_timepoint timepoint) override;
  zero_rt_status hasPassed(zero_rt_timepoint timepoint, bool &out) override;
  zero_rt_status precede(zero_rt_stream *other,
                         zero_rt_timepoint timepoint) override;
  zero_rt_status signal(Signal *out) override;
  zero_rt_status await(Signal signal) override;
  zero_rt_status precede(zero_rt_stream *other, Signal signal) override;
  zero_rt_stream *getQueue() override {
    (void)flushSelected(); // if this fails, the next call fails, too
    return reinterpret_cast<zero_rt_stream *>(stream);
  }
  void select(Stream to) override;
  zero_rt_status record(Signal *end) override;
  zero_rt_status record(zero_rt_stream *other, Signal *end) override;
  void dropSignal(Signal end) override;
  Stream getStream() const { return selected; }

  zero_rt_status getInterconnect(Interconnect **out) override;
  zero_rt_status load(const zero_rt_library &library, double *slots,
                      std::unique_ptr<Program> *out) override;

  /// Called in a loop while this device is waited for; may be null.
  void setWatch(Watch *newWatch) { watch = newWatch; }
  bool isWatched() const { return watch != nullptr; }

  bool wantsGraphs() const { return useGraphs; }
  /// The graph that takes the work of the compute stream, if it can. Null: work
  /// goes to the stream.
  void setGraphs(CudaGraphs *newGraphs) { graphs = newGraphs; }
  /// Who holds launches back; null: nobody.
  void setHeld(HeldLaunches *newHeld) { held = newHeld; }
  bool isHeldBy(const HeldLaunches *other) const { return held == other; }
  CUcontext getContext() const { return context; }
  int32_t getOrdinal() const { return ordinal; }
  /// Queues the work of the graph and what is held back. Called before other
  /// work is queued, and before a wait. A set and `await` go ahead of what is
  /// held back.
  zero_rt_status flush();
  /// Does the same if the selected stream is the one of that work, which is the
  /// compute stream.
  zero_rt_status flushSelected() {
    return stream == streams[0] ? flush() : zero_rt_status(ZERO_RT_OK);
  }
  /// Queues a set.
  zero_rt_status launch(CUfunction function, unsigned blocks, unsigned threads,
                        void **arguments);
  /// Queues a copy of |src|, which may be pageable memory, and has read |src|
  /// on return. The copy comes before the work of a graph that is not queued
  /// yet, which must not use this memory.
  zero_rt_status copyNow(void *dst, const void *src, int64_t bytes);

  /// Queues |function|, which runs on a thread of the driver. It must not call
  /// the driver or throw.
  zero_rt_status queue(std::function<void()> function);

  const Driver &driver;
  ThreadPool pool;
  /// The selected stream.
  CUstream stream = nullptr;
  /// The architecture, such as "sm_90".
  std::string arch;

private:
  CudaDevice(const Driver &driver, int32_t ordinal, int32_t threads,
             bool useGraphs)
      : driver(driver), pool(threads), ordinal(ordinal), useGraphs(useGraphs),
        label("cuda:" + std::to_string(ordinal)) {}
  zero_rt_status initialize();
  zero_rt_status createPool();
  zero_rt_status openTo(const CudaDevice &other);
  zero_rt_status create(CUevent *out);
  zero_rt_status takeEvent(CUevent *out);
  zero_rt_status recordOn(CUstream which, Signal *end);
  /// The event of a timepoint; null if the timepoint has passed.
  CUevent findEvent(zero_rt_timepoint timepoint) const;

  zero_rt_status waitFor(CUevent event);
  zero_rt_status drain(CUstream which);
  /// Called before a launch. If the queue of the driver is full, the driver
  /// blocks the calling thread, where no error of another rank is seen. So a
  /// watched device waits before the queue is full.
  zero_rt_status keepShort();

  /// Whether work that is queued now goes to a graph.
  bool isForGraph() const { return graphs && stream == streams[0]; }
  zero_rt_status flushGraph();
  /// Queues what is held back, before other work of the selected stream.
  zero_rt_status launchHeld() {
    return held && stream == streams[0] ? held->launchHeld()
                                        : zero_rt_status(ZERO_RT_OK);
  }
  zero_rt_status setOnDevice(const MemsetNode &node);
  bool isOnHost(const void *data) const;
  zero_rt_status checkHost() const;

  int32_t ordinal;
  bool useGraphs;
  CudaGraphs *graphs = nullptr;
  HeldLaunches *held = nullptr;
  std::string label;
  std::map<uintptr_t, size_t> hostMemory; // sizes by address
  std::atomic<bool> hostHasFailed{false};
  std::recursive_mutex entered; // by a call, or by the watchdog
  CUdevice device = 0;
  CUcontext context = nullptr;
  bool isRetained = false;
  CUmemoryPool memoryPool = nullptr;
  Stream selected = Stream::Compute;
  CUstream streams[numStreams] = {};
  CUevent passing = nullptr; // between two streams; a use ends in its call
  CUevent signals[4] = {};
  CUevent milestones[2] = {}; // of `keepShort`, in turn
  uint64_t launches = 0;
  size_t nextSignal = 0;
  /// The timepoints that may not have passed, in the order of their marks.
  /// Their numbers have another order.
  std::map<zero_rt_timepoint, CUevent> events;
  std::deque<zero_rt_timepoint> marked;
  std::vector<CUevent> spare;    // has room for all events of `takeEvent`
  size_t numTaken = 0;           // by `takeEvent`, from the driver
  bool hasLostTimepoint = false; // a timepoint was marked without an event
  std::vector<char> seen;        // the result of `look`
  LentNccl lent;
  std::unique_ptr<NcclInterconnect> interconnect;
  Watch *watch = nullptr;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_CUDA_DEVICE_H
