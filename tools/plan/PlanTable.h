//===- PlanTable.h - The plan of a compiled step as tables ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_PLAN_PLANTABLE_H
#define ZERO_TOOLS_PLAN_PLANTABLE_H

#include "llvm/Support/raw_ostream.h"

namespace zero {

/// Prints the tables of |plan|, the text of a plan.
void printPlanTable(llvm::StringRef plan, llvm::raw_ostream &os);

/// "1.50 GiB", in the largest unit of which there is one.
std::string formatBytes(int64_t bytes);
/// That a step needs |needed| bytes, which are more than |most|.
std::string describeExcess(int64_t needed, int64_t most);

} // namespace zero

#endif // ZERO_TOOLS_PLAN_PLANTABLE_H
