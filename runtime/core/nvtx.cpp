//===- nvtx.cpp - Ranges for a profiler of NVIDIA -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/nvtx.h"

#include "core/status.h"

#include <dlfcn.h>

using namespace zero_rt;

zero_rt_status Nvtx::open(std::unique_ptr<Nvtx> &out) {
  // CUDA 13 has the first, and older ones the second.
  const char *names[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1"};
  void *library = nullptr; // stays loaded
  const char *name = nullptr;
  std::string why;
  for (const char *candidate : names) {
    library = dlopen(name = candidate, RTLD_NOW | RTLD_LOCAL);
    if (library)
      break;
    why += (why.empty() ? "" : "; ") + std::string(dlerror());
  }
  if (!library)
    return fail(ZERO_RT_UNSUPPORTED,
                "options->nvtx: neither %s nor %s can be loaded (%s); install "
                "the library of NVTX, or leave out nvtx",
                names[0], names[1], why.c_str());
  auto nvtx = std::make_unique<Nvtx>();
  nvtx->rangePush =
      reinterpret_cast<int (*)(const char *)>(dlsym(library, "nvtxRangePushA"));
  nvtx->rangePop = reinterpret_cast<int (*)()>(dlsym(library, "nvtxRangePop"));
  if (!nvtx->rangePush || !nvtx->rangePop)
    return fail(ZERO_RT_UNSUPPORTED,
                "options->nvtx: %s has no ranges; leave out nvtx", name);
  out = std::move(nvtx);
  return ZERO_RT_OK;
}

void Nvtx::push(const Span &span) const {
  if (!*span.label) {
    rangePush(span.call);
    return;
  }
  rangePush((std::string(span.call) + " " + span.label).c_str());
}
