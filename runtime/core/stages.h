//===- stages.h - Which program a rank runs ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_STAGES_H
#define ZERO_RT_CORE_STAGES_H

#include "zero_rt/library.h"

#include <functional>
#include <string>

namespace zero_rt {

/// The number of the pipeline stage of |rank|; 0 if there are no pipeline
/// stages.
int64_t stageIndexOf(const zero_rt_library &whole, int32_t rank);

/// The coordinate of |rank| over |axis| (a row of axes).
int64_t coordinateOf(const zero_rt_library &library, int32_t rank,
                     int64_t axis);

/// The rank at |coordinate| over |axis|, with the coordinates of |rank| over
/// the other axes.
int32_t rankAt(const zero_rt_library &library, int32_t rank, int64_t axis,
               int64_t coordinate);

/// The library of the pipeline stage of |rank| in |whole|; |whole| itself if
/// there are no pipeline stages.
const zero_rt_library &stageOf(const zero_rt_library &whole, int32_t rank);

/// The coordinates of the pipeline stage of |rank|, such as "pp = 1".
std::string describeStage(const zero_rt_library &whole, int32_t rank);

/// The first rank for the library of whose pipeline stage |holds| is true.
int32_t
firstRankWhere(const zero_rt_library &whole,
               const std::function<bool(const zero_rt_library &)> &holds);

/// The first rank whose pipeline stage holds |parameter|, frozen or not.
int32_t firstHolder(const zero_rt_library &whole, int32_t parameter);

/// Checks that the libraries of all pipeline stages agree in what they must
/// share.
zero_rt_status checkStages(const zero_rt_library &whole);

} // namespace zero_rt

#endif // ZERO_RT_CORE_STAGES_H
