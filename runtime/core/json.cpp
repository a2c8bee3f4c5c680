//===- json.cpp - Reads and writes JSON -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/json.h"

#include "core/status.h"

#define JSON_NO_IO // no streams, which take time to compile
#include <nlohmann/json.hpp>

#include <unordered_set>

using namespace zero_rt;

/// No file of this project nests deeper.
static constexpr size_t deepestJson = 16;
/// A value takes much more memory than text. Files of this project have fewer
/// than one in so many bytes.
static constexpr size_t leastBytesOfValue = 8;

std::string zero_rt::quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
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
  out = count;
  return count >= 0;
}

namespace {

/// Walks over a text, and tells in |outAt| how far the reader is.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  reference operator*() const { return *at; }
  Cursor &operator++() {
    outAt = ++at;
    return *this;
  }
  bool operator==(const Cursor &other) const { return at == other.at; }
  bool operator!=(const Cursor &other) const { return at != other.at; }

  const char *at;
  const char *&outAt;
};

/// Makes a tree of what the library reads. A function that returns false has
/// stored a message, and ends the reading.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  TreeBuilder(std::string_view text, Json &root)
      : text(text), at(text.data()), root(root) {}

  bool read() {
    // The library would take it for the end.
    size_t zero = text.find('\0');
    if (zero != text.npos)
      return refuse("a zero byte", zero + 1);
    const char *end = text.data() + text.size();
    return nlohmann::json::sax_parse(Cursor{at, at}, Cursor{end, at}, this);
  }

  bool null() override { return add(Json::Kind::Null); }
  bool boolean(bool) override { return add(Json::Kind::Bool); }
  bool number_integer(int64_t) override { return add(Json::Kind::Number); }
  bool number_unsigned(uint64_t value) override {
    if (!add(Json::Kind::Number))
      return false;
    if (value <= uint64_t(INT64_MAX))
      last->count = int64_t(value);
    return true;
  }
  bool number_float(double, const std::string &) override {
    return add(Json::Kind::Number);
  }
  bool string(std::string &value) override {
    if (!add(Json::Kind::String))
      return false;
    last->text = std::move(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t &) override { return false; } // no JSON

  bool start_object(size_t) override { return open(Json::Kind::Object); }
  bool key(std::string &value) override {
    parents.back()->members.emplace_back().first = std::move(value);
    return true;
  }
  bool end_object() override {
    std::unordered_set<std::string_view> keys;
    for (const auto &[key, value] : parents.back()->members)
      if (!keys.insert(key).second)
        return refuse("key " + quote(key) + " a second time");
    parents.pop_back();
    return true;
  }
  bool start_array(size_t) override { return open(Json::Kind::Array); }
  bool end_array() override {
    parents.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const nlohmann::json::exception &error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: WHAT"
    std::string_view what = error.what();
    what.remove_prefix(what.find(']') + 2);
    if (what.substr(0, 11) == "parse error")
      what.remove_prefix(what.find(": ") + 2);
    return refuse(std::string(what), position);
  }

private:
  bool refuse(const std::string &what) {
    return refuse(what, size_t(at - text.data()));
  }
  /// |numRead| is the number of bytes up to the wrong one.
  static bool refuse(const std::string &what, size_t numRead) {
    fail(ZERO_RT_INVALID_ARGUMENT, "it is not JSON: %.300s at byte %zu",
         what.c_str(), numRead - 1);
    return false;
  }
  bool add(Json::Kind kind) {
    if (parents.size() > deepestJson)
      return refuse("nesting that is too deep");
    if (++numValues > 16 + text.size() / leastBytesOfValue)
      return refuse("too many values for so little text");
    if (parents.empty())
      last = &root;
    else if (parents.back()->kind == Json::Kind::Array)
      last = &parents.back()->items.emplace_back();
    else
      last = &parents.back()->members.back().second;
    last->kind = kind;
    return true;
  }
  bool open(Json::Kind kind) {
    if (!add(kind))
      return false;
    parents.push_back(last);
    return true;
  }

  std::string_view text;
  const char *at; // behind what was read
  size_t numValues = 0;
  Json &root;
  Json *last = nullptr;
  std::vector<Json *> parents; // each is the last value within the one before
};

} // namespace

zero_rt_status zero_rt::readJson(std::string_view text, Json &out) {
  return TreeBuilder(text, out).read() ? ZERO_RT_OK : ZERO_RT_INVALID_ARGUMENT;
}

bool zero_rt::isUtf8(std::string_view text) {
  Json value;
  return !readJson(quote(text), value) && value.text == text;
}
