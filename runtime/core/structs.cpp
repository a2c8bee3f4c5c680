//===- structs.cpp - Structs of callers of any version --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/structs.h"

using namespace zero_rt;

/// No version has a struct of this size. A larger struct_size was not set.
static constexpr size_t mostBytes = 4096;

zero_rt_status zero_rt::checkSize(const char *name, uint32_t size,
                                  size_t oldest) {
  if (size >= oldest && size <= mostBytes)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "%s->struct_size is %u, expected at least %zu and at most %zu",
              name, unsigned(size), oldest, mostBytes);
}

zero_rt_status zero_rt::checkUnknown(const char *name, const void *data,
                                     size_t known, uint32_t size) {
  const char *bytes = static_cast<const char *>(data);
  for (size_t i = known; i < size; ++i)
    if (bytes[i])
      return fail(ZERO_RT_UNSUPPORTED,
                  "%s uses a field at byte %zu, and this runtime, of abi "
                  "version %d, knows the first %zu bytes; use a later runtime",
                  name, i, ZERO_RT_ABI_VERSION, known);
  return ZERO_RT_OK;
}
