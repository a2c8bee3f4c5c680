//===- LossScaleTexts.cpp - Loss scales as text ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/RuleTexts.h"
#include "tools/recipe/Recipe.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>

using namespace zero;
using llvm::StringRef;

std::string zero::writeStaticLossScale(double scale) {
  return "zero.loss_scale @loss_scale counters [scale = " + formatReal(scale) +
         "] {\n^update(%overflow: i1, %scale: f64):\n"
         "  zero.yield %scale : f64\n}\n";
}

/// Puts |now| in the place of |before|, which is in |text|.
static void replace(std::string &text, StringRef before, StringRef now) {
  size_t place = text.find(before);
  // The example and this file change together; a test compares them.
  if (place != std::string::npos)
    text.replace(place, before.size(), now);
}

std::string zero::writeDynamicLossScale(const DynamicLossScale &rule) {
  // It has DeepSpeed's defaults.
  std::string text = getLossScaleText("deepspeed");
  text.erase(0, text.find("zero.loss_scale"));
  std::string hysteresis = formatReal(rule.hysteresis);
  auto setConstant = [&](StringRef name, StringRef before, StringRef now) {
    std::string begin = ("%" + name + " = arith.constant ").str();
    replace(text, begin + before.str(), begin + now.str());
  };
  replace(text, "scale = 65536.0",
          "scale = " + formatReal(std::ldexp(1.0, rule.power)));
  replace(text, "hysteresis = 2.0", "hysteresis = " + hysteresis);
  setConstant("window", "1000.0", formatReal(rule.window));
  setConstant("full", "2.0", hysteresis);
  setConstant("minimum", "1.0", formatReal(rule.minimum));
  if (rule.isRefilled)
    replace(text, "select %overflow, %left, %refilled",
            "select %overflow, %left, %full");
  return text;
}
