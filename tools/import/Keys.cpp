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
#include "tools/import/Keys.inc"
#include "tools/import/KeysOfParts.inc"
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

bool ConfigKey::takesNull() const {
  // null is false for the switches, another default than the table's for a
  // rate, and has an error of its own for the clip.
  constexpr StringRef others[] = {
      "gradient_accumulation_steps",    "prescale_gradients",
      "optimizer.params.torch_adam",    "zero_optimization.cpu_offload",
      "scheduler.params.warmup_max_lr", "gradient_clipping"};
  return defaultText.empty() || defaultText == "null" ||
         llvm::is_contained(others, path);
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

/// The part of |path| behind its last dot.
static StringRef getLastPart(StringRef path) {
  return path.drop_front(path.rfind('.') + 1);
}

std::string zero::suggestConfigKey(StringRef path) {
  std::string best;
  unsigned least = path.size() / 4 + 2;
  auto consider = [&](StringRef known) {
    // A key of nearly the same name in another block is meant, too.
    unsigned distance =
        std::min(path.edit_distance(known, /*AllowReplacements=*/true, least),
                 1 + getLastPart(path).edit_distance(
                         getLastPart(known), /*AllowReplacements=*/true,
                         getLastPart(path).size() / 4 + 1));
    if (distance >= least)
      return;
    least = distance;
    best = known.str();
  };
  for (const ConfigKey &key : kKeys) {
    StringRef known = key.path;
    known.consume_back(".*");
    consider(known);
    if (known.contains('.'))
      consider(known.split('.').first);
  }
  return best;
}

std::string zero::describeConfigKeys() {
  std::string text = "| key | default | what becomes of it |\n|---|---|---|\n";
  for (const ConfigKey &key : kKeys) {
    text += llvm::formatv("| `{0}` | ", key.path);
    if (!key.defaultText.empty())
      text += llvm::formatv("`{0}` ", key.defaultText);
    text += llvm::formatv("| {0}: {1}", key.getFateName(), key.what);
    if (!key.filler.empty())
      text += llvm::formatv(". \"auto\" is {0}", key.filler);
    text += " |\n";
  }
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
