//===- library_versions.cpp - Libraries of earlier versions ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/library_versions.h"

#include "core/structs.h"

using namespace zero_rt;

zero_rt_status zero_rt::checkVersion(const char *what, uint32_t version) {
  if (version < ZERO_RT_OLDEST_ABI_VERSION)
    return fail(ZERO_RT_UNSUPPORTED,
                "%s has abi version %u, this runtime accepts %d to %d; compile "
                "the step again",
                what, version, ZERO_RT_OLDEST_ABI_VERSION, ZERO_RT_ABI_VERSION);
  if (version > ZERO_RT_ABI_VERSION)
    return fail(ZERO_RT_UNSUPPORTED,
                "%s has abi version %u, this runtime accepts %d to %d; use a "
                "runtime of version %u or later, or compile the step with the "
                "zero-compile of this runtime",
                what, version, ZERO_RT_OLDEST_ABI_VERSION, ZERO_RT_ABI_VERSION,
                version);
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::checkVersion(const zero_rt_library &library) {
  ZERO_RT_TRY(checkVersion("library", library.abi_version));
  if (library.struct_size >= oldestSize<zero_rt_library>)
    return ZERO_RT_OK;
  return fail(ZERO_RT_UNSUPPORTED,
              "library has size %u, expected at least %zu; compile the step "
              "again",
              library.struct_size, oldestSize<zero_rt_library>);
}

zero_rt_status KnownLibrary::read(const zero_rt_library &library) {
  ZERO_RT_TRY(readStruct(&library, "library", whole));
  if (whole.num_stages == 0)
    return ZERO_RT_OK;
  others.resize(size_t(whole.num_stages - 1));
  stages.push_back(&whole);
  for (zero_rt_library &other : others) {
    ZERO_RT_TRY(
        readStruct(library.stages[stages.size()], "library of a stage", other));
    stages.push_back(&other);
  }
  whole.stages = stages.data();
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT uint32_t zero_rt_version(void) { return ZERO_RT_ABI_VERSION; }
