//===- Contexts.cpp - Contexts that last as long as a process -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contexts.h"

#include "device/cuda/driver.h"

#include <dlfcn.h>

using namespace zero_rt;

/// What this calls of the driver. The runtime's own table is hidden in its
/// library.
static Driver load(void *library) {
  Driver driver;
#define FUNCTION(NAME, SYMBOL, ARGUMENTS)                                      \
  driver.NAME =                                                                \
      reinterpret_cast<CUresult(*) ARGUMENTS>(dlsym(library, #SYMBOL));
#include "device/cuda/driver.def"
  return driver;
}

void zero::check::holdContexts(const std::vector<int32_t> &gpus,
                               std::string &arch) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  Driver driver = library ? load(library) : Driver();
  if (!driver.Init || !driver.DeviceGet || !driver.DeviceGetAttribute ||
      !driver.DevicePrimaryCtxRetain || driver.Init(0))
    return;
  for (int32_t gpu : gpus) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    int major = 0, minor = 0;
    if (driver.DeviceGet(&device, gpu) ||
        driver.DevicePrimaryCtxRetain(&context, device) ||
        driver.DeviceGetAttribute(&major, attributeCapabilityMajor, device) ||
        driver.DeviceGetAttribute(&minor, attributeCapabilityMinor, device))
      return;
    if (arch.empty())
      arch = "sm_" + std::to_string(major) + std::to_string(minor);
  }
}
