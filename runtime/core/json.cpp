//===- json.cpp - Reads and writes JSON -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/json.h"

#include "core/status.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <unordered_set>

using namespace zero_rt;

/// No file of this project nests deeper. The reader is recursive.
static constexpr int deepestJson = 16;
/// A value takes much more memory than text. Files of this project have fewer
/// than one in so many bytes.
static constexpr size_t leastBytesOfValue = 8;

std::string zero_rt::quote(std::string_view text) {
  std::string quoted = "\"";
  for (char byte : text) {
    auto c = static_cast<unsigned char>(byte);
    char escaped[8];
    if (c == '"' || c == '\\')
      std::snprintf(escaped, sizeof(escaped), "\\%c", c);
    else if (c < 0x20)
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
    else
      std::snprintf(escaped, sizeof(escaped), "%c", c);
    quoted += escaped;
  }
  return quoted + "\"";
}

const Json *Json::find(std::string_view key) const {
  for (const auto &[name, value] : members)
    if (name == key)
      return &value;
  return nullptr;
}

const std::string *Json::findText(std::string_view key) const {
  const Json *value = find(key);
  return value && value->kind == Kind::String ? &value->text : nullptr;
}

bool Json::isCount(int64_t &out) const {
  const char *end = text.data() + text.size();
  auto [last, error] = std::from_chars(text.data(), end, out);
  return kind == Kind::Number && error == std::errc() && last == end &&
         out >= 0;
}

namespace {
class JsonReader {
public:
  explicit JsonReader(std::string_view text) : text(text) {}

  zero_rt_status readAll(Json &out) {
    ZERO_RT_TRY(readValue(out, 0));
    skipSpace();
    return at == text.size() ? ZERO_RT_OK : refuse("text behind the value");
  }

private:
  zero_rt_status refuse(const char *what) const {
    return fail(ZERO_RT_INVALID_ARGUMENT, "it is not JSON: %s at byte %zu",
                what, at);
  }
  void skipSpace() {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  }
  /// Whether the next character is |c|, which is then skipped.
  bool take(char c) {
    skipSpace();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool takeWord(std::string_view word) {
    if (text.substr(at, word.size()) != word)
      return false;
    at += word.size();
    return true;
  }

  zero_rt_status readValue(Json &out, int depth) {
    if (depth > deepestJson)
      return refuse("nesting that is too deep");
    if (++numValues > 16 + text.size() / leastBytesOfValue)
      return refuse("too many values for so little text");
    if (take('{'))
      return readMembers(out, depth);
    if (take('['))
      return readItems(out, depth);
    if (at < text.size() && text[at] == '"') {
      out.kind = Json::Kind::String;
      return readText(out.text);
    }
    if (takeWord("null"))
      return ZERO_RT_OK;
    if (takeWord("true") || takeWord("false")) {
      out.kind = Json::Kind::Bool;
      return ZERO_RT_OK;
    }
    size_t end =
        std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
    if (end == at)
      return refuse("no value");
    out.kind = Json::Kind::Number;
    out.text = text.substr(at, end - at);
    at = end;
    return ZERO_RT_OK;
  }

  zero_rt_status readMembers(Json &out, int depth) {
    out.kind = Json::Kind::Object;
    if (take('}'))
      return ZERO_RT_OK;
    do {
      skipSpace();
      auto &[key, value] = out.members.emplace_back();
      ZERO_RT_TRY(readText(key));
      if (!take(':'))
        return refuse("no ':' behind a key");
      ZERO_RT_TRY(readValue(value, depth + 1));
    } while (take(','));
    if (!take('}'))
      return refuse("no '}' or ',' behind a member");
    std::unordered_set<std::string_view> keys;
    for (const auto &[key, value] : out.members)
      if (!keys.insert(key).second)
        return refuse(("key " + quote(key) + " a second time").c_str());
    return ZERO_RT_OK;
  }

  zero_rt_status readItems(Json &out, int depth) {
    out.kind = Json::Kind::Array;
    if (take(']'))
      return ZERO_RT_OK;
    do
      ZERO_RT_TRY(readValue(out.items.emplace_back(), depth + 1));
    while (take(','));
    return take(']') ? ZERO_RT_OK : refuse("no ']' or ',' behind an item");
  }

  zero_rt_status readText(std::string &out) {
    if (at == text.size() || text[at] != '"')
      return refuse("no string");
    for (++at; at < text.size(); ++at) {
      if (text[at] == '"') {
        ++at;
        return ZERO_RT_OK;
      }
      if (static_cast<unsigned char>(text[at]) < 0x20)
        return refuse("a control character in a string");
      if (text[at] != '\\')
        out += text[at];
      else if (!readEscape(out))
        return refuse("a wrong escape");
    }
    return refuse("no end of a string");
  }

  /// Leaves |at| at the last character of the escape.
  bool readEscape(std::string &out) {
    constexpr std::string_view letters = "\"\\/bfnrt",
                               meaning = "\"\\/\b\f\n\r\t";
    if (++at == text.size())
      return false;
    if (text[at] == 'u')
      return readUnicode(out);
    size_t letter = letters.find(text[at]);
    if (letter == letters.npos)
      return false;
    out += meaning[letter];
    return true;
  }

  bool readUnicode(std::string &out) {
    uint32_t code = 0;
    if (!readUnit(code))
      return false;
    if (code >= 0xD800 && code < 0xDC00) { // the first half of a pair
      uint32_t low = 0;
      if (text.substr(at + 1, 2) != "\\u")
        return false;
      at += 2;
      if (!readUnit(low) || low < 0xDC00 || low > 0xDFFF)
        return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    appendUtf8(out, code);
    return true;
  }
  bool readUnit(uint32_t &out) {
    std::string_view digits = text.substr(at + 1, 4);
    auto [last, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    at += 4;
    return digits.size() == 4 && error == std::errc() &&
           last == digits.data() + 4;
  }
  static void appendUtf8(std::string &out, uint32_t code) {
    if (code < 0x80) {
      out += char(code);
      return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned char heads[] = {0, 0xC0, 0xE0, 0xF0};
    out += char(heads[more] | code >> 6 * more);
    while (more--)
      out += char(0x80 | (code >> 6 * more & 0x3F));
  }

  std::string_view text;
  size_t at = 0;
  size_t numValues = 0;
};
} // namespace

zero_rt_status zero_rt::readJson(std::string_view text, Json &out) {
  return JsonReader(text).readAll(out);
}
