//===- ReadJson.h - JSON that users wrote -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_READJSON_H
#define ZERO_TOOLS_IMPORT_READJSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace zero {

/// Reads |text|, which messages call |file|. Text that is not UTF-8, is nested
/// deeply, has a key twice in an object or a number that is not finite is an
/// error: nothing, and |message|.
std::optional<llvm::json::Value>
readJson(llvm::StringRef text, llvm::StringRef file, std::string &message);

/// |text| of a user in a line of a message or a comment: without control
/// characters, and not long.
std::string cutText(llvm::StringRef text);

/// The shortest decimal that is |number|.
std::string formatNumber(double number);

/// |value| as cutText.
std::string cutValue(const llvm::json::Value &value);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_READJSON_H
