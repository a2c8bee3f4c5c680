//===- Json.h - Limits of JSON that a user gives ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_JSON_H
#define ZERO_TOOLS_DRIVER_JSON_H

#include "llvm/ADT/StringRef.h"

namespace zero {

/// What tools read has a few levels. The parser of JSON recurses, so that a
/// file of nothing but brackets would exhaust its stack.
inline constexpr int64_t kDeepestJson = 1000;

/// Whether |text| is nested more deeply than that, in strings or out of them.
inline bool isNestedDeeply(llvm::StringRef text) {
  int64_t depth = 0;
  for (char c : text) {
    if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (depth > kDeepestJson)
      return true;
  }
  return false;
}

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_JSON_H
