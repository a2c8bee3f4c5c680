//===- ReadJson.cpp - JSON that users wrote -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/ReadJson.h"

#include "tools/driver/Nesting.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <vector>

using namespace zero;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

/// What a list shows of its entries.
static constexpr size_t kMostEntries = 8;

std::string zero::cutText(StringRef text) {
  constexpr size_t kMost = 80;
  std::string cut = text.take_front(kMost).str();
  for (char &c : cut)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  if (text.size() <= kMost)
    return cut;
  return json::fixUTF8(cut) + "...";
}

std::string zero::formatNumber(double number) {
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, number);
    double read = 0;
    if (!StringRef(text).getAsDouble(read) && read == number)
      break;
  }
  return text;
}

std::string zero::cutValue(const json::Value &value) {
  if (std::optional<double> number = value.getAsNumber())
    return value.getAsInteger() ? std::to_string(*value.getAsInteger())
                                : formatNumber(*number);
  std::string text;
  if (const json::Array *list = value.getAsArray()) {
    for (size_t i = 0; i < std::min(list->size(), kMostEntries); ++i)
      text += (i ? ", " : "") + cutValue((*list)[i]);
    return cutText("[" + text + "]");
  }
  llvm::raw_string_ostream(text) << value;
  return cutText(text);
}

/// A key of |text|, which is JSON, that an object has twice; empty if there is
/// none. llvm's parser keeps the last of equal keys.
static std::optional<std::string> findTwice(StringRef text) {
  std::vector<llvm::StringSet<>> open;
  bool isKey = false;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '{':
      open.emplace_back();
      isKey = true;
      break;
    case '[':
      open.emplace_back();
      isKey = false;
      break;
    case '}':
    case ']':
      open.pop_back();
      isKey = false;
      break;
    case ',':
    case ':':
      // In a list no string is followed by ':', so none is a key.
      isKey = text[i] == ',';
      break;
    case '"': {
      size_t begin = i;
      for (++i; text[i] != '"'; ++i)
        if (text[i] == '\\')
          ++i;
      StringRef quoted = text.slice(begin, i + 1);
      size_t next = text.find_first_not_of(" \t\r\n", i + 1);
      if (!isKey || next == StringRef::npos || text[next] != ':')
        break;
      std::string key = quoted.drop_front().drop_back().str();
      if (StringRef(key).contains('\\'))
        if (llvm::Expected<json::Value> read = json::parse(quoted))
          key = read->getAsString()->str();
      if (!open.back().insert(key).second)
        return key;
      break;
    }
    default:
      break;
    }
  }
  return std::nullopt;
}

/// The key of a number of |value| that is not finite; |path| is that of value.
static std::optional<std::string> findInfinite(const json::Value &value,
                                               const Twine &path) {
  if (std::optional<double> number = value.getAsNumber())
    if (!std::isfinite(*number))
      return path.str();
  if (const json::Object *object = value.getAsObject())
    for (const auto &[key, entry] : *object)
      if (auto found =
              findInfinite(entry, path + (path.isTriviallyEmpty() ? "" : ".") +
                                      StringRef(key)))
        return found;
  if (const json::Array *list = value.getAsArray())
    for (const json::Value &entry : *list)
      if (auto found = findInfinite(entry, path))
        return found;
  return std::nullopt;
}

std::optional<json::Value> zero::readJson(StringRef text, StringRef file,
                                          std::string &message) {
  size_t at = 0;
  if (!json::isUTF8(text, &at)) {
    message = (file + ": is not UTF-8 from byte " + Twine(at) +
               " on; save the file as UTF-8")
                  .str();
    return std::nullopt;
  }
  if (isNestedDeeply(text)) {
    message =
        (file + ": is nested more than " + Twine(kDeepestText) + " levels deep")
            .str();
    return std::nullopt;
  }
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    message = (file + ": " + toString(parsed.takeError())).str();
    return std::nullopt;
  }
  if (std::optional<std::string> twice = findTwice(text)) {
    message = (file + ": the key '" + cutText(*twice) +
               "' occurs twice in an object; keep one of them")
                  .str();
    return std::nullopt;
  }
  if (std::optional<std::string> path = findInfinite(*parsed, "")) {
    message = (file + ": '" + cutText(*path) +
               "' is a number beyond the range of f64")
                  .str();
    return std::nullopt;
  }
  return std::move(*parsed);
}
