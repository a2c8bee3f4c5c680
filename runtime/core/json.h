//===- json.h - Reads and writes JSON ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime has no LLVM, so it cannot use the JSON of the tools, and uses
// nlohmann_json. This reader adds bounds of what a hostile file costs: depth,
// memory for each byte of text, and no key twice. No other file includes the
// headers of the library, which take two seconds to compile.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_JSON_H
#define ZERO_RT_CORE_JSON_H

#include "zero_rt/abi.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zero_rt {

/// |text| as a string of JSON. A byte that is not UTF-8 becomes U+FFFD.
std::string quote(std::string_view text);

/// Whether |text| is UTF-8, so that a reader gets back what `quote` has.
bool isUtf8(std::string_view text);

struct Json {
  enum class Kind { Null, Bool, Number, String, Array, Object };

  Kind kind = Kind::Null;
  std::string text;        // of a string, without escapes
  int64_t count = -1;      // of a whole number from 0 to 2^63 - 1
  std::vector<Json> items; // of an array
  std::vector<std::pair<std::string, Json>> members; // in the order of the text

  /// The member |key|, or null. Null, too, if this is no object.
  const Json *find(std::string_view key) const;
  /// The text of the member |key| if it is a string, else null.
  const std::string *findText(std::string_view key) const;
  /// Whether this is a whole number from 0 to 2^63 - 1, which |out| gets.
  bool isCount(int64_t &out) const;
};

/// Reads |text|, all of it. Errors: invalid_argument; the message says what is
/// wrong at which byte. An object with two equal keys is an error, and so are
/// deep nesting, and a text of nearly nothing but short values.
zero_rt_status readJson(std::string_view text, Json &out);

} // namespace zero_rt

#endif // ZERO_RT_CORE_JSON_H
