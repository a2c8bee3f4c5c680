//===- client_device.h - A device of the client -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What streams, signals and timepoints mean is as on the host device: all work
// is done when a call returns.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CLIENT_CLIENT_DEVICE_H
#define ZERO_RT_DEVICE_CLIENT_CLIENT_DEVICE_H

#include "device/host/host_device.h"
#include "zero_rt/device.h"

namespace zero_rt {

class ClientDevice final : public HostDevice {
public:
  /// |functions| outlives the device.
  static zero_rt_status create(const zero_rt_device_functions &functions,
                               const zero_rt_options &options, int32_t threads,
                               std::unique_ptr<Device> &out);
  ~ClientDevice() override;

  const char *name() const override { return functions.name; }
  bool usesHostMemory() const override { return false; }
  void *allocate(int32_t space, int64_t bytes) override;
  void release(int32_t space, void *data) override;
  zero_rt_status copy(void *dst, const void *src, int64_t bytes) override;
  zero_rt_status set(void *data, uint64_t bits, int64_t size,
                     int64_t count) override;
  zero_rt_status load(const zero_rt_library &library, double *slots,
                      std::unique_ptr<Program> *out) override;

private:
  ClientDevice(const zero_rt_device_functions &functions, int32_t threads)
      : HostDevice(threads), functions(functions) {}

  const zero_rt_device_functions &functions;
  void *context = nullptr;
  bool isCreated = false;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CLIENT_CLIENT_DEVICE_H
