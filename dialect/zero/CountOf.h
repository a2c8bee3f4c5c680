//===- CountOf.h - A number and the thing counted ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_COUNTOF_H
#define ZERO_DIALECT_ZERO_COUNTOF_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace zero {

/// "1 gradient" and "2 gradients". |plural| is the ending of other numbers.
inline std::string countOf(int64_t count, llvm::StringRef thing,
                           llvm::StringRef plural = "s") {
  return std::to_string(count) + " " + thing.str() +
         (count == 1 ? "" : plural.str());
}

} // namespace zero

#endif // ZERO_DIALECT_ZERO_COUNTOF_H
