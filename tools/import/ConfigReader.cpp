//===- ConfigReader.cpp - Keys of a configuration by their paths ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"
#include "tools/import/Keys.h"
#include "tools/import/ReadJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace zero;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

const json::Value *ConfigReader::findWritten(StringRef path) const {
  const json::Object *object = &root;
  while (true) {
    auto [key, rest] = path.split('.');
    const json::Value *value = object->get(key);
    if (!value || rest.empty())
      return value;
    object = value->getAsObject();
    if (!object)
      return nullptr;
    path = rest;
  }
}

const json::Value *ConfigReader::find(StringRef path) const {
  return isNull(path) ? nullptr : findWritten(path);
}

bool ConfigReader::isNull(StringRef path) const {
  const json::Value *value = findWritten(path);
  return value && value->kind() == json::Value::Null;
}

bool ConfigReader::isAuto(StringRef path) const {
  const json::Value *value = find(path);
  return value && value->getAsString() == "auto";
}

std::optional<bool> ConfigReader::getBool(StringRef path) const {
  const json::Value *value = find(path);
  return value ? value->getAsBoolean() : std::nullopt;
}

std::optional<int64_t> ConfigReader::getInteger(StringRef path) const {
  const json::Value *value = find(path);
  return value ? value->getAsInteger() : std::nullopt;
}

std::optional<double> ConfigReader::getNumber(StringRef path) const {
  const json::Value *value = find(path);
  return value ? value->getAsNumber() : std::nullopt;
}

std::optional<StringRef> ConfigReader::getString(StringRef path) const {
  const json::Value *value = find(path);
  return value ? value->getAsString() : std::nullopt;
}

double ConfigReader::getConstant(StringRef path, double otherwise,
                                 double least) {
  if (isAuto(path))
    failAuto(path);
  std::optional<double> number = getNumber(path);
  if (number && *number < least)
    fail(path, "expected at least " + formatNumber(least));
  return number.value_or(otherwise);
}

int64_t ConfigReader::getCount(StringRef path, int64_t otherwise,
                               int64_t least) {
  if (isAuto(path))
    failAuto(path);
  std::optional<int64_t> number = getInteger(path);
  if (number && *number < least)
    fail(path, "expected at least " + Twine(least));
  return number.value_or(otherwise);
}

void ConfigReader::fail(StringRef path, const Twine &text) {
  const json::Value *value = findWritten(path);
  errors.push_back(
      {path.str(),
       ("is " + Twine(value ? cutValue(*value) : "missing") + ", " + text)
           .str()});
}

void ConfigReader::failAuto(StringRef path) {
  const ConfigKey *key = findConfigKey(path);
  fail(path, "which Hugging Face's Trainer replaces by " + key->filler +
                 ", and the step needs the value; add --set=" + path + "=" +
                 key->example);
}

void ConfigReader::decide(StringRef path, const Twine &text) {
  const json::Value *value = findWritten(path);
  auto earlier = llvm::find_if(
      config.decisions, [&](const Decision &one) { return one.key == path; });
  if (earlier != config.decisions.end())
    earlier->text = text.str();
  else
    config.decisions.push_back(
        {path.str(), value ? cutValue(*value) : "", text.str()});
}

/// Whether |value| has the type that |key| asks for.
static bool hasKind(const json::Value &value, KeyKind kind) {
  switch (kind) {
  case KeyKind::boolean:
    return value.getAsBoolean().has_value();
  case KeyKind::integer:
    return value.getAsInteger().has_value();
  case KeyKind::number:
    return value.getAsNumber().has_value();
  case KeyKind::string:
    return value.getAsString().has_value();
  case KeyKind::list:
    return value.getAsArray();
  case KeyKind::any:
    return true;
  }
  llvm_unreachable("a kind without a case");
}

/// Whether |value| is the default of a refused |key|, or switches it off.
static bool isHarmless(const json::Value &value, const ConfigKey &key) {
  if (const json::Object *object = value.getAsObject())
    return object->empty() || object->getBoolean("enabled") == false;
  llvm::Expected<json::Value> expected =
      json::parse(key.defaultText.empty() ? "null" : key.defaultText);
  if (!expected) {
    llvm::consumeError(expected.takeError());
    return false;
  }
  if (std::optional<double> number = value.getAsNumber())
    return number == expected->getAsNumber();
  bool isSwitch = expected->getAsBoolean().has_value();
  return value == *expected || (!isSwitch && value.getAsBoolean() == false);
}

void ConfigReader::checkValue(const json::Value &value, StringRef path) {
  const ConfigKey *key = findConfigKey(path);
  if (!key && isConfigBlock(path)) {
    if (const json::Object *object = value.getAsObject())
      checkBlock(*object, path);
    else
      fail(path, "expected an object");
    return;
  }
  if (!key) {
    std::string known = suggestConfigKey(path);
    // DeepSpeed ignores a key of the configuration itself, and refuses one of
    // its parts. A key that is nearly a known one is a mistake in any case.
    if (known.empty() && !path.contains('.'))
      strangers.push_back(path.str());
    else
      fail(path,
           "and DeepSpeed documents no such key; " +
               (known.empty() ? "remove it" : "did you mean '" + known + "'?"));
    return;
  }
  if (value.getAsString() == "auto" && key->kind != KeyKind::string &&
      key->kind != KeyKind::any) {
    if (key->filler.empty())
      fail(path, "which nobody replaces; write " + key->getKindName() +
                     ", such as " + key->example);
    return;
  }
  if (!hasKind(value, key->kind)) {
    fail(path, "expected " + key->getKindName() + ", such as " + key->example);
    return;
  }
  if (key->fate != KeyFate::refused || isHarmless(value, *key))
    return;
  if (key->defaultText.empty())
    fail(path, "which is not supported: " + key->what + "; remove the key");
  else
    fail(path,
         "expected " + key->defaultText + ": not supported: " + key->what);
}

void ConfigReader::checkNull(StringRef path) {
  const ConfigKey *key = findConfigKey(path);
  if (key && key->fate == KeyFate::honoured && !key->takesNull())
    fail(path, "and DeepSpeed takes no null for it; remove the key, or write " +
                   key->getKindName() + ", such as " + key->example);
}

void ConfigReader::checkBlock(const json::Object &object, StringRef path) {
  // An object has no order, and messages must have one.
  std::map<StringRef, const json::Value *> byName;
  for (const auto &[key, value] : object)
    byName.emplace(key, &value);
  for (auto [key, value] : byName) {
    std::string inner = (path + (path.empty() ? "" : ".") + Twine(key)).str();
    // Paths have dots between keys, so such a key would pass for another one.
    if (key.contains('.'))
      errors.push_back({cutText(key),
                        "has a dot, and no key of DeepSpeed has; "
                        "write objects in objects, or remove it"});
    else if (value->kind() == json::Value::Null &&
             (findConfigKey(inner) || isConfigBlock(inner)))
      checkNull(inner);
    else
      checkValue(*value, inner);
  }
}

void ConfigReader::checkKeys() { checkBlock(root, ""); }
