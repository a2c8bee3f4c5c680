//===- executables.cpp - The code of a library for other devices ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/executables.h"

#include "core/structs.h"

#include <cstring>

using namespace zero_rt;

zero_rt_status zero_rt::checkExecutables(const zero_rt_library &library) {
  auto fails = [&](int64_t row, const char *what) {
    return fail(ZERO_RT_INTERNAL,
                "library '%s' is corrupt: executable %lld: %s", library.name,
                (long long)row, what);
  };
  if (library.num_executables < 0 ||
      (library.num_executables > 0 && !library.executables))
    return fails(0, "table is null");
  for (int64_t i = 0; i < library.num_executables; ++i) {
    zero_rt_executable executable;
    ZERO_RT_TRY(readElement(library.executables, i, "executables", executable));
    if (!executable.target || !executable.format)
      return fails(i, "no target or no format");
    if (!executable.data || executable.bytes <= 0)
      return fails(i, "no data");
  }
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::findExecutables(const zero_rt_library &library,
                                        const char *target,
                                        std::vector<zero_rt_executable> &out) {
  for (int64_t i = 0; i < library.num_executables; ++i) {
    zero_rt_executable executable;
    ZERO_RT_TRY(readElement(library.executables, i, "executables", executable));
    if (std::strcmp(executable.target, target) == 0)
      out.push_back(executable);
  }
  return ZERO_RT_OK;
}
