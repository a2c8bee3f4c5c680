//===- Units.h - Units of parameters that ranks shard -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_UNITS_H
#define ZERO_PASSES_LOWER_UNITS_H

#include "passes/lower/Protocol.h"

namespace zero {

/// Creates the buffer for the whole parameters of |bucket|, without memory.
mlir::FlatSymbolRefAttr declareUnsharded(ProgramBuilder &program,
                                         const BucketBuffers &bucket);

/// Creates the memory in which units are unsharded, and the tables and handlers
/// of units, and those of frozen buckets that are sharded. Returns whether
/// there is a unit: a bucket keeps slices.
bool buildUnits(ProgramBuilder &program, BucketMap &buckets);

/// Lets callers unshard and reshard in each state but that after measure.
/// The transitions of all other events exist.
void addUnitTransitions(ProgramBuilder &program);

} // namespace zero

#endif // ZERO_PASSES_LOWER_UNITS_H
