//===- PlanBytes.h - The memory that a plan says a rank needs ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_PLAN_PLANBYTES_H
#define ZERO_TOOLS_PLAN_PLANBYTES_H

#include "tools/driver/Driver.h"

#include "llvm/Support/JSON.h"

#include <vector>

namespace zero {

/// The programs of the ranks of |plan|: one for each pipeline stage.
std::vector<const llvm::json::Object *>
getStages(const llvm::json::Object &plan);

/// The number in table[row][column] of a program.
int64_t getNumber(const llvm::json::Object &stage, llvm::StringRef table,
                  llvm::StringRef row, llvm::StringRef column);

/// All buffers of a rank in a memory space, "device" or "host", when there are
/// most; with pipeline stages, of the stage that needs most.
int64_t getMostBytes(const llvm::json::Object &plan, llvm::StringRef space);

/// The memory of a device that --max-bytes names; 0, any, if it is not given.
mlir::LogicalResult readMaxBytes(const OptionText &option, int64_t &bytes,
                                 std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_PLAN_PLANBYTES_H
