//===- cpu_features.h - What this machine can execute -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_CPU_FEATURES_H
#define ZERO_RT_CORE_CPU_FEATURES_H

#include "zero_rt/abi.h"

namespace zero_rt {

/// Checks a comma separated list of LLVM feature names. Null and "" are empty
/// lists. A name that this runtime does not know counts as missing.
zero_rt_status checkCpuFeatures(const char *features, const char *library);

} // namespace zero_rt

#endif // ZERO_RT_CORE_CPU_FEATURES_H
