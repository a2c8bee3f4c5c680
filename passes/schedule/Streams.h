//===- Streams.h - The stream of each call ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_SCHEDULE_STREAMS_H
#define ZERO_PASSES_SCHEDULE_STREAMS_H

#include "dialect/zrt/MemoryUses.h"

namespace zero {

/// Sets the stream of each call of |program|.
void assignStreams(zrt::ProgramOp program, const zrt::ProgramSymbols &symbols);

} // namespace zero

#endif // ZERO_PASSES_SCHEDULE_STREAMS_H
