//===- driver.cpp - The CUDA driver, if there is one ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/driver.h"

#include "core/status.h"

#include <dlfcn.h>
#include <mutex>

using namespace zero_rt;

/// The functions of memory that is allocated in the order of a stream.
static constexpr int oldestDriver = 11020;

zero_rt_status zero_rt::check(const Driver &driver, CUresult result,
                              const char *call) {
  if (result == cudaSuccess)
    return ZERO_RT_OK;
  const char *name = nullptr, *text = nullptr;
  if (driver.GetErrorName(result, &name))
    name = "unknown error";
  if (driver.GetErrorString(result, &text))
    text = "no description";
  return fail(result == cudaErrorOutOfMemory ? ZERO_RT_OUT_OF_MEMORY
                                             : ZERO_RT_DEVICE_FAILED,
              "%s failed: %s (%d, %s)", call, name, result, text);
}

/// Looks up the driver's functions. Functions that it lacks are null.
static zero_rt_status load(Driver &driver) {
  // The library is never closed, since the driver has threads of its own.
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ZERO_RT_UNSUPPORTED, "there is no CUDA driver here: %s",
                dlerror());
#define FUNCTION(NAME, SYMBOL, ARGUMENTS)                                      \
  driver.NAME =                                                                \
      reinterpret_cast<CUresult(*) ARGUMENTS>(dlsym(library, #SYMBOL));
#include "device/cuda/driver.def"
  return ZERO_RT_OK;
}

static zero_rt_status checkDriverVersion(const Driver &driver) {
  // An old driver lacks functions, so the message names its version and not the
  // functions.
  int version = 0;
  if (!driver.DriverGetVersion || driver.DriverGetVersion(&version) ||
      version < oldestDriver)
    return fail(ZERO_RT_UNSUPPORTED,
                "the CUDA driver is of version %d.%d, expected at least %d.%d",
                version / 1000, version % 1000 / 10, oldestDriver / 1000,
                oldestDriver % 1000 / 10);
#define FUNCTION(NAME, SYMBOL, ARGUMENTS)                                      \
  if (!driver.NAME)                                                            \
    return fail(ZERO_RT_UNSUPPORTED, "the CUDA driver has no " #SYMBOL);
#include "device/cuda/driver.def"
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::getDriver(const Driver **out) {
  static std::mutex mutex;
  static Driver driver;
  static bool isLoaded = false;
  // After a failure the next caller tries again, and gets the message, too.
  std::lock_guard<std::mutex> lock(mutex);
  if (!isLoaded)
    ZERO_RT_TRY(load(driver));
  isLoaded = true;
  ZERO_RT_TRY(checkDriverVersion(driver));
  // A driver without a GPU returns this error, too.
  if (check(driver, driver.Init(0), "cuInit"))
    return fail(ZERO_RT_UNSUPPORTED, "no GPU can be used: %s", lastMessage());
  *out = &driver;
  return ZERO_RT_OK;
}
