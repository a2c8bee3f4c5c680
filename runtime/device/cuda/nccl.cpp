//===- nccl.cpp - NCCL, if it is there ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/nccl.h"

#include "core/status.h"

#include <dlfcn.h>
#include <mutex>

using namespace zero_rt;

/// The functions for communicators that can be aborted at any time.
static constexpr int oldestNccl = 21400;

std::string zero_rt::describeNcclVersion(int version) {
  // Until 2.8 the first number was followed by one digit less.
  int major = version < 10000 ? 1000 : 10000;
  return std::to_string(version / major) + "." +
         std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

/// Looks up NCCL's functions. Functions that it lacks are null.
static zero_rt_status load(Nccl &nccl) {
  // The library is never closed, since NCCL has threads of its own.
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ZERO_RT_UNSUPPORTED,
                "ranks that are processes need NCCL for their GPUs, and there "
                "is none here: %s; install it, or have its folder in "
                "LD_LIBRARY_PATH",
                dlerror());
#define FUNCTION(NAME, RESULT, ARGUMENTS)                                      \
  nccl.NAME =                                                                  \
      reinterpret_cast<RESULT(*) ARGUMENTS>(dlsym(library, "nccl" #NAME));
#include "device/cuda/nccl.def"
  return ZERO_RT_OK;
}

static zero_rt_status checkNcclVersion(Nccl &nccl) {
  // An old NCCL lacks functions, so the message names its version and not the
  // functions.
  if (!nccl.GetVersion || nccl.GetVersion(&nccl.version) ||
      nccl.version < oldestNccl)
    return fail(ZERO_RT_UNSUPPORTED,
                "NCCL is of version %s, expected at least %s",
                describeNcclVersion(nccl.version).c_str(),
                describeNcclVersion(oldestNccl).c_str());
#define FUNCTION(NAME, RESULT, ARGUMENTS)                                      \
  if (!nccl.NAME)                                                              \
    return fail(ZERO_RT_UNSUPPORTED, "NCCL %s has no nccl" #NAME,              \
                describeNcclVersion(nccl.version).c_str());
#include "device/cuda/nccl.def"
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::getNccl(const Nccl **out) {
  static std::mutex mutex;
  static Nccl nccl;
  static bool isLoaded = false;
  // After a failure the next caller tries again, and gets the message, too.
  std::lock_guard<std::mutex> lock(mutex);
  if (!isLoaded)
    ZERO_RT_TRY(load(nccl));
  isLoaded = true;
  ZERO_RT_TRY(checkNcclVersion(nccl));
  *out = &nccl;
  return ZERO_RT_OK;
}
