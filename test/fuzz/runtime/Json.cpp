//===- Json.cpp - Texts that nobody wrote ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Input.h"

#include "core/json.h"

using namespace zero_rt;
using namespace zero_rt::fuzz;

/// With so many spaces that a reader accepts any number of values.
static std::string write(const Json &value) {
  std::string text, comma(8, ' ');
  switch (value.kind) {
  case Json::Kind::Null:
    return "null";
  case Json::Kind::Bool:
    return "true";
  case Json::Kind::Number:
    return value.count < 0 ? "-1" : std::to_string(value.count);
  case Json::Kind::String:
    return quote(value.text);
  case Json::Kind::Array:
    for (const Json &item : value.items) {
      text += comma + write(item);
      comma = ",       ";
    }
    return "[" + text + "]";
  case Json::Kind::Object:
    for (const auto &[key, member] : value.members) {
      text += comma + quote(key) + ":" + write(member);
      comma = ",       ";
    }
    return "{" + text + "}";
  }
  return text;
}

/// What is read is read again from what it is written as. A message names a
/// byte of the text.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Json quoted;
  require(!readJson(quote(text), quoted), "a quoted text to be JSON");
  Json value;
  if (zero_rt_status status = readJson(text, value)) {
    require(status == ZERO_RT_INVALID_ARGUMENT, "invalid_argument");
    std::string message = lastMessage();
    size_t at = message.rfind(" at byte ");
    require(message.find("it is not JSON: ") == 0 && at != message.npos &&
                std::stoull(message.substr(at + 9)) <= size,
            "a message with a byte of the text");
    return 0;
  }
  std::string written = write(value);
  Json again;
  require(!readJson(written, again) && write(again) == written,
          "what was read to be read again");
  return 0;
}
