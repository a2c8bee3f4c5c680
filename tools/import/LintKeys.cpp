//===- LintKeys.cpp - Keys that are unknown, wrong or read nowhere --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Keys.h"
#include "tools/import/Lint.h"
#include "tools/import/Precision.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

#include <algorithm>
#include <cmath>

using namespace zero;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

/// |visit|s the path of each key with a row.
static void
visitKeys(LintContext &context,
          llvm::function_ref<void(StringRef, const ConfigKey &)> visit) {
  for (const ConfigKey &key : getConfigKeys())
    if (context.has(key.path))
      visit(key.path, key);
}

void zero::lintKeys(LintContext &context) {
  for (const std::string &key : context.reader.strangers)
    context.add(Severity::warning, key,
                "is no key of DeepSpeed, which ignores it", "remove the key");
  visitKeys(context, [&](StringRef path, const ConfigKey &key) {
    if (key.fate == KeyFate::dead)
      context.add(Severity::warning, path, "is dead: " + key.what,
                  "remove the key");
    bool isRefused =
        llvm::any_of(context.errors, [&](const ConfigError &error) {
          return error.key == path;
        });
    if (context.reader.isAuto(path) && !key.filler.empty() && !isRefused)
      context.add(Severity::note, path,
                  "is \"auto\", which Hugging Face's Trainer replaces by " +
                      key.filler + "; DeepSpeed alone fails",
                  "write a value to use the file without the Trainer");
  });
}

/// A note for each key of |block| that is there, but for |enabled|.
static void lintBlock(LintContext &context, StringRef block,
                      const Twine &reason) {
  const json::Value *value = context.reader.find(block);
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    return;
  std::map<StringRef, int> inOrder;
  for (const auto &[key, entry] : *object)
    if (StringRef(key) != "enabled" &&
        findConfigKey((block + "." + StringRef(key)).str()))
      inOrder.emplace(key, 0);
  for (const auto &entry : inOrder)
    context.add(Severity::note, (block + "." + entry.first).str(),
                "is not read: " + reason, "remove the key, or enable " + block);
}

/// Keys of |keys| that are there are not read, since |reason|.
static void lintList(LintContext &context, llvm::ArrayRef<StringRef> keys,
                     const Twine &reason, const Twine &remedy) {
  for (StringRef key : keys)
    if (context.has(key))
      context.add(Severity::warning, key, "is not read: " + reason, remedy);
}

static void lintLossScale(LintContext &context) {
  const StringRef rule[] = {
      "fp16.initial_scale_power", "fp16.loss_scale_window", "fp16.hysteresis",
      "fp16.min_loss_scale", "fp16.consecutive_hysteresis"};
  if (context.reader.getNumber("fp16.loss_scale").value_or(0) != 0)
    lintList(context, rule, "fp16.loss_scale makes the loss scale static",
             "remove the key, or write fp16.loss_scale 0");
  else if (context.isHalf && context.stage == 0)
    lintList(context, {"fp16.hysteresis", "fp16.consecutive_hysteresis"},
             "at stage 0 FP16_Optimizer has a rule without hysteresis",
             "remove the key, or write zero_optimization.stage 1");
}

/// A minimum above the first scale.
static void lintLeastScale(LintContext &context) {
  constexpr StringRef kLeast = "fp16.min_loss_scale";
  bool isDynamic = context.isHalf &&
                   context.reader.getNumber("fp16.loss_scale").value_or(0) == 0;
  double power =
      context.reader.getNumber("fp16.initial_scale_power").value_or(16);
  if (isDynamic && context.reader.getNumber(kLeast).value_or(0) >
                       std::ldexp(1.0, int(std::clamp(power, 0.0, 1000.0))))
    context.add(Severity::warning, kLeast,
                "is more than the first loss scale, 2^" +
                    Twine(int64_t(power)) +
                    ": the first overflow raises the scale",
                "write less, or a higher fp16.initial_scale_power");
}

static void lintStages(LintContext &context) {
  if (context.stage == 3)
    return;
  visitKeys(context, [&](StringRef path, const ConfigKey &key) {
    bool isOfStage3 = path.starts_with("zero_optimization.stage3_") ||
                      path == "zero_optimization.sub_group_size";
    if (isOfStage3)
      context.add(Severity::note, path,
                  "is read at stage 3, and the stage is " +
                      Twine(context.stage),
                  "remove the key");
  });
  StringRef device =
      context.reader.getString("zero_optimization.offload_param.device")
          .value_or("none");
  if (device != "none")
    context.add(Severity::error, "zero_optimization.offload_param.device",
                "is for stage 3, and the stage is " + Twine(context.stage),
                "remove offload_param, or write stage 3");
}

void zero::lintUnread(LintContext &context) {
  if (context.has("fp16") && !context.isHalf &&
      !context.reader.isAuto("fp16.enabled"))
    lintBlock(context, "fp16", "fp16.enabled is false");
  std::string brain = getBrainKey("enabled");
  if (context.has(getBrainType()) && !context.isBrain &&
      !context.reader.isAuto(brain))
    lintBlock(context, getBrainType(), brain + " is false");
  if (context.has(getBrainType()))
    lintList(context, {"bfloat16"},
             "DeepSpeed reads this older block only without " + getBrainType(),
             "remove the block");
  lintLossScale(context);
  lintLeastScale(context);
  lintStages(context);
  if (context.has("zero_optimization.cpu_offload"))
    context.add(Severity::warning, "zero_optimization.cpu_offload",
                "is deprecated",
                "write offload_optimizer {\"device\": \"cpu\"}");
  if (context.isOn("prescale_gradients"))
    lintList(context, {"gradient_predivide_factor"},
             "prescale_gradients divides before the sum", "remove the key");
}
