//===- NarrowSums.h - Sums that could travel narrower, exactly --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_NARROWSUMS_H
#define ZERO_CODEGEN_HOST_NARROWSUMS_H

#include "codegen/host/Stages.h"

#include "llvm/Support/JSON.h"

namespace zero {

/// For each pipeline stage, warnings about reductions whose addends could
/// travel in a narrower type without rounding.
std::vector<llvm::json::Array>
describeNarrowSums(llvm::ArrayRef<StageProgram> stages);

/// The bytes that one rank sends in a ring of D ranks for |bytes|: (D-1)/D of
/// them.
int64_t getRingBytes(int64_t bytes, int64_t ranks);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_NARROWSUMS_H
