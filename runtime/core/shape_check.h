//===- shape_check.h - Whether the shapes of a library hold -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_SHAPE_CHECK_H
#define ZERO_RT_CORE_SHAPE_CHECK_H

#include "core/status.h"
#include "zero_rt/library.h"

namespace zero_rt {

/// Checks the shapes of parameters, where |library| has them; its parameters
/// and axes are right. Errors: internal.
zero_rt_status checkShapes(const zero_rt_library &library);

} // namespace zero_rt

#endif // ZERO_RT_CORE_SHAPE_CHECK_H
