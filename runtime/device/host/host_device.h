//===- host_device.h - The CPU as a device ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both spaces are the same memory. Work is done when the call returns.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_HOST_HOST_DEVICE_H
#define ZERO_RT_DEVICE_HOST_HOST_DEVICE_H

#include "core/thread_pool.h"
#include "device/device.h"

namespace zero_rt {

class HostDevice : public Device {
public:
  /// Throws the errors of std::thread.
  explicit HostDevice(int32_t threads) : pool(threads) {}

  const char *name() const override { return "host"; }
  bool isImmediate() const override { return true; }
  bool usesHostMemory() const override { return true; }
  zero_rt_status enter() override { return ZERO_RT_OK; }
  bool tryEnter() override { return true; }
  void leave() override {}

  zero_rt_status share(Device &) override { return ZERO_RT_OK; }
  void *allocate(int32_t space, int64_t bytes) override;
  void release(int32_t space, void *data) override;
  zero_rt_status copy(void *dst, const void *src, int64_t bytes) override;
  zero_rt_status set(void *data, uint64_t bits, int64_t size,
                     int64_t count) override;

  zero_rt_status finish() override { return ZERO_RT_OK; }
  zero_rt_status look(const void *data, int64_t, const void **out) override {
    *out = data;
    return ZERO_RT_OK;
  }
  zero_rt_status follow(zero_rt_stream *) override { return ZERO_RT_OK; }
  zero_rt_status precede(zero_rt_stream *) override { return ZERO_RT_OK; }
  zero_rt_status mark(zero_rt_timepoint) override { return ZERO_RT_OK; }
  zero_rt_status mark(zero_rt_timepoint, Signal) override { return ZERO_RT_OK; }
  zero_rt_status wait(zero_rt_timepoint) override { return ZERO_RT_OK; }
  zero_rt_status hasPassed(zero_rt_timepoint, bool &out) override {
    out = true;
    return ZERO_RT_OK;
  }
  zero_rt_status precede(zero_rt_stream *, zero_rt_timepoint) override {
    return ZERO_RT_OK;
  }
  zero_rt_status signal(Signal *out) override {
    *out = nullptr;
    return ZERO_RT_OK;
  }
  zero_rt_status await(Signal) override { return ZERO_RT_OK; }
  zero_rt_status precede(zero_rt_stream *, Signal) override {
    return ZERO_RT_OK;
  }
  void select(Stream) override {}
  zero_rt_status record(Signal *) override { return ZERO_RT_OK; }
  zero_rt_status record(zero_rt_stream *, Signal *) override {
    return ZERO_RT_OK;
  }
  void dropSignal(Signal) override {}

  zero_rt_status getInterconnect(Interconnect **out) override {
    *out = nullptr;
    return ZERO_RT_OK;
  }
  zero_rt_status load(const zero_rt_library &library, double *slots,
                      std::unique_ptr<Program> *out) override;

protected:
  ThreadPool pool;
};

/// Sets |count| elements of |size| bytes to |bits|.
void setOnHost(void *data, uint64_t bits, int64_t size, int64_t count);

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_HOST_HOST_DEVICE_H
