//===- Nesting.cpp - Limits of texts that a user gives --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Nesting.h"

#include <algorithm>

using namespace zero;

bool zero::isNestedDeeply(llvm::StringRef text) {
  int64_t depth = 0;
  enum class Kind { code, string, comment } kind = Kind::code;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i], before = i > 0 ? text[i - 1] : '\0';
    if (c == '\n') {
      kind = Kind::code;
    } else if (kind == Kind::string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        kind = Kind::code;
    } else if (kind == Kind::comment) {
      continue;
    } else if (c == '"') {
      kind = Kind::string;
    } else if (c == '/' && before == '/') {
      kind = Kind::comment;
    } else if (llvm::StringRef("[{(<").contains(c)) {
      ++depth;
    } else if (llvm::StringRef("]})").contains(c) ||
               (c == '>' && before != '-')) {
      depth = std::max<int64_t>(depth - 1, 0);
    }
    if (depth > kDeepestText)
      return true;
  }
  return false;
}
