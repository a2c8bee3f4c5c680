//===- open_library.h - Libraries that were opened by path ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_OPEN_LIBRARY_H
#define ZERO_RT_CORE_OPEN_LIBRARY_H

#include "zero_rt/library.h"

namespace zero_rt {

/// The hash of the file from which zero_rt_open loaded |library|; 0 if the
/// library came into the process in another way.
uint64_t contentHashOf(const zero_rt_library *library);

} // namespace zero_rt

#endif // ZERO_RT_CORE_OPEN_LIBRARY_H
