//===- ReadPrecision.cpp - Types of numbers, and the loss scale -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"
#include "tools/import/Precision.h"
#include "tools/import/RuleTexts.h"

#include <cmath>

using namespace zero;
using llvm::StringRef;
using llvm::Twine;

/// Whether |key| is true; "auto" counts as false.
static bool isEnabled(ConfigReader &reader, StringRef key) {
  return reader.getBool(key).value_or(false);
}

static void readLossScale(ConfigReader &reader) {
  ImportedConfig &config = reader.config;
  double fixed = reader.getConstant("fp16.loss_scale", 0, 0);
  if (fixed != 0) {
    // A scale without an inverse cannot be divided by.
    if (!std::isfinite(1 / fixed))
      return reader.fail("fp16.loss_scale", "expected a number that has an "
                                            "inverse");
    config.recipe.lossScale = writeStaticLossScale(fixed);
    return reader.decide("fp16.loss_scale", "a static loss scale");
  }
  DynamicLossScale rule;
  rule.power = reader.getCount("fp16.initial_scale_power", 16, 0);
  rule.window = reader.getCount("fp16.loss_scale_window", 1000, 1);
  rule.hysteresis = reader.getCount("fp16.hysteresis", 2, 1);
  rule.minimum = reader.getConstant("fp16.min_loss_scale", 1, 0);
  rule.isRefilled =
      reader.getBool("fp16.consecutive_hysteresis").value_or(false);
  constexpr int64_t kMostPower = 127; // of f32, in which a loss is scaled
  if (rule.power > kMostPower)
    return reader.fail("fp16.initial_scale_power", "expected at most 127");
  if (rule.minimum == 0)
    return reader.fail("fp16.min_loss_scale", "expected more than 0");
  reader.decide("fp16.loss_scale", "a dynamic loss scale");
  reader.decide("fp16.initial_scale_power",
                "it begins as 2^" + Twine(rule.power));
  reader.decide("fp16.loss_scale_window", "it doubles after " +
                                              Twine(rule.window) +
                                              " steps without overflow");
  if (config.stage == 0) {
    rule.hysteresis = 1;
    reader.decide("fp16.hysteresis", "1 at stage 0, as in FP16_Optimizer");
  } else {
    reader.decide("fp16.hysteresis", "it halves at overflow " +
                                         Twine(rule.hysteresis) +
                                         " and each one after that");
  }
  reader.decide("fp16.min_loss_scale", "its minimum");
  reader.decide("fp16.consecutive_hysteresis",
                rule.isRefilled ? "a step without overflow refills hysteresis"
                                : "growth refills hysteresis");
  config.recipe.lossScale = writeDynamicLossScale(rule);
}

/// The type that |key| names; nothing where it names none. That of
/// communication has fewer names, and they may be in upper case.
static std::optional<StringRef> readType(ConfigReader &reader, StringRef key,
                                         bool isTravel = false) {
  std::optional<StringRef> text = reader.getString(key);
  if (!text)
    return std::nullopt;
  std::string name = isTravel ? text->lower() : text->str();
  if (isTravel && (StringRef(name).contains("float") || name == "half"))
    name.clear();
  StringRef type = findConfigType(name);
  if (!type.empty() && type != "f64")
    return type;
  reader.fail(key, "expected fp32, fp16 or " + getBrainType());
  return std::nullopt;
}

/// Whether the type |wide| holds every number of |narrow|.
static bool holds(StringRef wide, StringRef narrow) {
  return wide == narrow || wide == "f32";
}

static void readSumTypes(ConfigReader &reader) {
  constexpr llvm::StringLiteral kSum = "data_types.grad_accum_dtype";
  constexpr llvm::StringLiteral kTravel = "communication_data_type";
  ImportedConfig &config = reader.config;
  Recipe &recipe = config.recipe;
  StringRef sum = readType(reader, kSum).value_or(config.dtype);
  if (!holds(sum, config.dtype))
    return reader.fail(kSum, "which does not hold every number of the "
                             "parameters' type " +
                                 config.dtype + "; write fp32");
  StringRef travel =
      readType(reader, kTravel, /*isTravel=*/true).value_or(config.dtype);
  if (holds(travel, sum))
    sum = travel;
  else if (!holds(sum, travel))
    sum = "f32";
  recipe.accumulator = sum.str();
  reader.decide(kSum, "sums in " + sum);
  if (travel == sum)
    return reader.decide(kTravel, "sums over ranks in the same type");
  recipe.reduceDtype = travel.str();
  reader.decide(kTravel, "addends travel in " + travel +
                             ", and their sum stays in " + sum);
}

std::string zero::findBrainEnabled(const ConfigReader &reader) {
  bool isOlder = !reader.find(getBrainType()) && reader.find("bfloat16");
  return isOlder ? "bfloat16.enabled" : getBrainKey("enabled");
}

void zero::readPrecision(ConfigReader &reader) {
  ImportedConfig &config = reader.config;
  bool isHalf = isEnabled(reader, "fp16.enabled");
  std::string brain = findBrainEnabled(reader);
  bool isBrain = isEnabled(reader, brain);
  if (isHalf && isBrain)
    return reader.fail("fp16.enabled",
                       "and " + brain + " is true; keep one of them");
  if (!isHalf && !isBrain)
    for (StringRef key : {StringRef("fp16.enabled"), StringRef(brain)})
      if (reader.isAuto(key))
        return reader.fail(
            key, "which Hugging Face's Trainer replaces by its arguments; add "
                 "--set=" +
                     getBrainKey("enabled=true") +
                     ", --set=fp16.enabled=true or --set=" + key + "=false");
  if (isHalf) {
    config.dtype = getHalfType().str();
    reader.decide("fp16.enabled",
                  "parameters and gradients in " + config.dtype);
    readLossScale(reader);
  } else if (isBrain) {
    config.dtype = getBrainType().str();
    reader.decide(brain, "parameters and gradients in " + config.dtype);
    std::string check = getBrainKey("check_grad_overflow");
    bool isChecked = reader.getBool(check).value_or(true);
    config.recipe.nonfinite = isChecked ? "skip" : "apply";
    reader.decide(check, isChecked
                             ? "a step with a gradient that is not finite is "
                               "skipped"
                             : "a step with a gradient that is not finite is "
                               "applied");
  } else {
    reader.decide("fp16.enabled", "parameters and gradients in f32");
  }
  readSumTypes(reader);
}
