//===- registry.cpp - Devices by name -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/registry.h"

#include "device/cuda/cuda_device.h"
#include "device/host/host_device.h"

#include <deque>
#include <mutex>
#include <utility>

using namespace zero_rt;

namespace {
struct Registry {
  std::mutex mutex;
  std::deque<DeviceKind> kinds; // whose addresses stay
};
} // namespace

static zero_rt_status createHost(const DeviceRequest &request,
                                 std::unique_ptr<Device> &out) {
  out = std::make_unique<HostDevice>(request.threads);
  return ZERO_RT_OK;
}

static zero_rt_status createCuda(const DeviceRequest &request,
                                 std::unique_ptr<Device> &out) {
  const zero_rt_options &options = request.options;
  return CudaDevice::create(
      options.ordinal, request.threads, options.graphs != 0,
      {static_cast<NcclComm>(options.communicator), options.give_up}, &out);
}

static Registry &getRegistry() {
  // Never destroyed: a runtime may outlive the destructors of this library.
  static auto *registry = [] {
    auto *made = new Registry;
    made->kinds = {{"host", 0, /*communicator=*/"", createHost},
                   {"cuda", 1, /*communicator=*/"nccl", createCuda}};
    return made;
  }();
  return *registry;
}

zero_rt_status zero_rt::registerDevice(DeviceKind kind) {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const DeviceKind &other : registry.kinds)
    if (other.name == kind.name)
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "there is a device '%s' already; choose another name",
                  kind.name.c_str());
  registry.kinds.push_back(std::move(kind));
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::findDevice(const zero_rt_options &options,
                                   const DeviceKind **out) {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  std::string known;
  for (const DeviceKind &kind : registry.kinds) {
    if (options.device ? kind.name == options.device
                       : kind.number == options.device_number) {
      *out = &kind;
      return ZERO_RT_OK;
    }
    known += (known.empty() ? "'" : ", '") + kind.name + "'";
  }
  std::string asked = options.device ? "'" + std::string(options.device) + "'"
                                     : std::to_string(options.device_number);
  return fail(ZERO_RT_INVALID_ARGUMENT, "options->device is %s, expected %s",
              asked.c_str(), known.c_str());
}
