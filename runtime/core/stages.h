//===- stages.h - Which program a rank runs ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_STAGES_H
#define ZERO_RT_CORE_STAGES_H

#include "zero_rt/library.h"

#include <string>

namespace zero_rt {

/// The number of |rank|'s pipeline stage; 0 where there are none.
int64_t stageIndexOf(const zero_rt_library &whole, int32_t rank);

/// The coordinate of |rank| over |axis| (a row of axes).
int64_t coordinateOf(const zero_rt_library &library, int32_t rank,
                     int64_t axis);

/// The rank at |coordinate| over |axis|, and over the others where |rank| is.
int32_t rankAt(const zero_rt_library &library, int32_t rank, int64_t axis,
               int64_t coordinate);

/// The library of |rank|'s pipeline stage in |whole|, which is it where there
/// are no stages.
const zero_rt_library &stageOf(const zero_rt_library &whole, int32_t rank);

/// "pp = 1": where |rank| is.
std::string describeStage(const zero_rt_library &whole, int32_t rank);

/// The first rank on whose stage |parameter| is.
int32_t firstHolder(const zero_rt_library &whole, int32_t parameter);

/// Checks what libraries of stages have in common.
zero_rt_status checkStages(const zero_rt_library &whole);

} // namespace zero_rt

#endif // ZERO_RT_CORE_STAGES_H
