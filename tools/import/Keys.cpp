//===- Keys.cpp - What becomes of each key of DeepSpeed -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Keys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace zero;
using llvm::StringRef;
namespace json = llvm::json;

static constexpr ConfigKey kKeys[] = {
#define ZERO_KEY(PATH, KIND, FATE, DEFAULT, FILLER, EXAMPLE, WHAT)             \
  {PATH, KeyKind::KIND, KeyFate::FATE, DEFAULT, FILLER, EXAMPLE, WHAT},
#include "tools/import/Keys.def"
#include "tools/import/KeysOfParts.def"
#undef ZERO_KEY
};

StringRef ConfigKey::getFateName() const {
  constexpr StringRef names[] = {"honoured", "ignored", "dead", "refused"};
  return names[static_cast<size_t>(fate)];
}

StringRef ConfigKey::getKindName() const {
  constexpr StringRef names[] = {"true or false", "a whole number",
                                 "a number",      "a string",
                                 "a list",        "any value"};
  return names[static_cast<size_t>(kind)];
}

llvm::ArrayRef<ConfigKey> zero::getConfigKeys() { return kKeys; }

const ConfigKey *zero::findConfigKey(StringRef path) {
  const ConfigKey *best = nullptr;
  for (const ConfigKey &key : kKeys) {
    StringRef pattern = key.path;
    if (pattern == path)
      return &key;
    if (pattern.consume_back("*") && path.starts_with(pattern) &&
        (!best || best->path.size() < key.path.size()))
      best = &key;
  }
  return best;
}

bool zero::isConfigBlock(StringRef path) {
  return llvm::any_of(kKeys, [&](const ConfigKey &key) {
    StringRef rest = key.path;
    return rest.consume_front(path) && rest.starts_with(".");
  });
}

std::string zero::suggestConfigKey(StringRef path) {
  // A key of the same name in another block is what was meant, mostly.
  StringRef name = path.rsplit('.').second;
  if (name.empty())
    name = path;
  std::string best;
  unsigned least = std::max<size_t>(2, path.size() / 4) + 1;
  for (const ConfigKey &key : kKeys) {
    StringRef known = key.path;
    if (known.ends_with("*"))
      known = known.drop_back(2);
    StringRef last = known.rsplit('.').second;
    if (last.empty())
      last = known;
    unsigned distance = std::min(
        path.edit_distance(known, /*AllowReplacements=*/true, least),
        1 + name.edit_distance(last, /*AllowReplacements=*/true, least));
    if (distance < least) {
      least = distance;
      best = known.str();
    }
  }
  return best;
}

std::string zero::describeConfigKeys() {
  std::string text = "| key | | default | \"auto\" is | what becomes of it |\n"
                     "|---|---|---|---|---|\n";
  auto code = [](StringRef value) {
    return value.empty() ? std::string() : ("`" + value + "`").str();
  };
  for (const ConfigKey &key : kKeys)
    text += llvm::formatv("| {0} | {1} | {2} | {3} | {4} |\n", code(key.path),
                          key.getFateName(), code(key.defaultText), key.filler,
                          key.what);
  return text;
}

std::string zero::listConfigKeys() {
  json::Array list;
  for (const ConfigKey &key : kKeys)
    list.push_back(json::Object{{"key", key.path},
                                {"fate", key.getFateName()},
                                {"type", key.getKindName()},
                                {"default", key.defaultText},
                                {"auto", key.filler},
                                {"example", key.example},
                                {"what", key.what}});
  return llvm::formatv("{0:2}", json::Value(std::move(list)));
}
