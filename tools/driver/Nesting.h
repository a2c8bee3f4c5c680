//===- Nesting.h - Limits of texts that a user gives ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_NESTING_H
#define ZERO_TOOLS_DRIVER_NESTING_H

#include "llvm/ADT/StringRef.h"

namespace zero {

/// What tools read has a few levels. The parsers of JSON and MLIR recurse, so
/// that a file of nothing but brackets would exhaust their stack.
inline constexpr int64_t kDeepestText = 1000;

/// Whether brackets of |text| are nested more deeply than that. Strings and
/// comments, which end with their line, do not count.
bool isNestedDeeply(llvm::StringRef text);

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_NESTING_H
