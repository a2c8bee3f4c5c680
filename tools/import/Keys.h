//===- Keys.h - What becomes of each key of DeepSpeed -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_KEYS_H
#define ZERO_TOOLS_IMPORT_KEYS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace zero {

enum class KeyKind { boolean, integer, number, string, list, any };
enum class KeyFate { honoured, ignored, dead, refused };

/// A row of Keys.inc, which explains the columns.
struct ConfigKey {
  llvm::StringLiteral path;
  KeyKind kind;
  KeyFate fate;
  llvm::StringLiteral defaultText, filler, example, what;

  llvm::StringRef getFateName() const;
  /// "a whole number"
  llvm::StringRef getKindName() const;
  /// Whether DeepSpeed takes null for an honoured key.
  bool takesNull() const;
};

llvm::ArrayRef<ConfigKey> getConfigKeys();

/// The row of |path|; null for an unknown key.
const ConfigKey *findConfigKey(llvm::StringRef path);

/// Whether |path| is an object that has keys with rows.
bool isConfigBlock(llvm::StringRef path);

/// The known key most like |path|; empty if none is.
std::string suggestConfigKey(llvm::StringRef path);

/// All rows, as a table in Markdown and as JSON.
std::string describeConfigKeys();
std::string listConfigKeys();

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_KEYS_H
