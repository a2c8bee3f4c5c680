//===- registry.h - Devices by name -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_REGISTRY_H
#define ZERO_RT_DEVICE_REGISTRY_H

#include "device/device.h"

#include <functional>
#include <memory>
#include <string>

namespace zero_rt {

/// What a rank asks of its device.
struct DeviceRequest {
  const zero_rt_options &options;
  int32_t threads; // at least 1
};

/// A kind of device.
struct DeviceKind {
  std::string name;
  /// The number by which callers of ABI version 15 name it; -1: they cannot.
  int32_t number;
  /// The kind of communicator that a caller may lend; empty: none.
  std::string communicator;
  /// Throws the errors of std::thread.
  std::function<zero_rt_status(const DeviceRequest &,
                               std::unique_ptr<Device> &)>
      create;
};

/// Errors: invalid_argument (another kind has the name).
zero_rt_status registerDevice(DeviceKind kind);

/// The kind that |options| name. It is never removed. Errors: invalid_argument
/// (there is no such kind).
zero_rt_status findDevice(const zero_rt_options &options,
                          const DeviceKind **out);

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_REGISTRY_H
