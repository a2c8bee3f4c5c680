//===- executables.h - The code of a library for other devices --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_EXECUTABLES_H
#define ZERO_RT_CORE_EXECUTABLES_H

#include "zero_rt/library.h"

#include <vector>

namespace zero_rt {

/// Checks that the executables of |library| have a target, a format and data.
zero_rt_status checkExecutables(const zero_rt_library &library);

/// Appends the executables of |library| for |target| to |out|.
zero_rt_status findExecutables(const zero_rt_library &library,
                               const char *target,
                               std::vector<zero_rt_executable> &out);

} // namespace zero_rt

#endif // ZERO_RT_CORE_EXECUTABLES_H
