//===- ReadOptimizer.cpp - The optimizer and its hyperparameters ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"
#include "tools/import/ReadJson.h"

#include "llvm/ADT/STLExtras.h"

using namespace zero;
using llvm::StringRef;
namespace json = llvm::json;

static constexpr llvm::StringLiteral kOptimizerType = "optimizer.type";

namespace {
/// An optimizer of DeepSpeed: its file, its defaults and the keys of its own.
struct KnownOptimizer {
  llvm::StringLiteral name; // in lower case
  llvm::StringLiteral text; // in examples/optimizers
  double lr, beta1, beta2;
  llvm::ArrayRef<llvm::StringLiteral> keys;
};
} // namespace

static constexpr llvm::StringLiteral kAdamKeys[] = {
    "lr",          "weight_decay", "betas",           "eps",
    "adam_w_mode", "torch_adam",   "bias_correction", "amsgrad",
    "foreach",     "fused",        "set_grad_none",   "max_grad_norm",
    "maximize"};
static constexpr llvm::StringLiteral kLionKeys[] = {"lr", "weight_decay",
                                                    "betas", "set_grad_none"};
static constexpr llvm::StringLiteral kSgdKeys[] = {
    "lr",       "weight_decay", "momentum", "dampening",
    "nesterov", "maximize",     "foreach",  "fused"};
static const KnownOptimizer kKnown[] = {
    {"adam", "adamw", 1e-3, 0.9, 0.999, kAdamKeys},
    {"adamw", "adamw", 1e-3, 0.9, 0.999, kAdamKeys},
    {"lion", "lion", 1e-3, 0.9, 0.999, kLionKeys},
    {"sgd", "sgd", 1e-3, 0, 0, kSgdKeys}};

static std::string getOptimizerPath(StringRef parameter) {
  return ("optimizer.params." + parameter).str();
}

/// The hyperparameter |hyper| from the key |parameter|, with a default. "auto"
/// is a value that the caller gives at run time.
static void readHyperParameter(ConfigReader &reader, StringRef parameter,
                               StringRef hyper, double otherwise) {
  std::string path = getOptimizerPath(parameter);
  HyperValue &value = reader.config.recipe.hyper[hyper.str()];
  if (reader.isAuto(path)) {
    value.input = hyper.str();
    reader.decide(path, "the input " + hyper + " of apply");
    return;
  }
  value.number = reader.getConstant(path, otherwise, 0);
  reader.decide(path, hyper + " = " + formatNumber(value.number));
}

static void readBetas(ConfigReader &reader, const KnownOptimizer &known) {
  std::string path = getOptimizerPath("betas");
  HyperValues &hyper = reader.config.recipe.hyper;
  if (reader.isAuto(path)) {
    hyper["beta1"].input = "beta1";
    hyper["beta2"].input = "beta2";
    return reader.decide(path, "the inputs beta1 and beta2 of apply");
  }
  double betas[] = {known.beta1, known.beta2};
  if (const json::Value *value = reader.find(path)) {
    const json::Array &list = *value->getAsArray();
    bool isRight = list.size() == 2;
    for (size_t i = 0; isRight && i < 2; ++i) {
      std::optional<double> beta = list[i].getAsNumber();
      isRight = beta && *beta >= 0 && *beta < 1;
      betas[i] = beta.value_or(0);
    }
    if (!isRight)
      return reader.fail(path, "expected two numbers from 0 to less than 1");
  }
  hyper["beta1"].number = betas[0];
  hyper["beta2"].number = betas[1];
  reader.decide(path, "beta1 = " + formatNumber(betas[0]) +
                          ", beta2 = " + formatNumber(betas[1]));
}

/// Whether the optimizer |known| has every key of the parameters.
static bool checkOptimizerParameters(ConfigReader &reader,
                                     const KnownOptimizer &known) {
  const json::Value *value = reader.find("optimizer.params");
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    return true;
  std::vector<std::string> strange;
  for (const auto &[key, entry] : *object)
    if (!llvm::is_contained(known.keys, StringRef(key)))
      strange.push_back(StringRef(key).str());
  llvm::sort(strange);
  for (const std::string &key : strange)
    reader.fail(getOptimizerPath(key), "and " +
                                           *reader.getString(kOptimizerType) +
                                           " has no such parameter; remove it");
  return strange.empty();
}

static void readAdam(ConfigReader &reader, const KnownOptimizer &known) {
  std::string isDecoupled = getOptimizerPath("adam_w_mode");
  bool isAdam =
      known.name == "adam" && !reader.getBool(isDecoupled).value_or(true);
  bool isTorch = reader.getBool(getOptimizerPath("torch_adam")).value_or(false);
  reader.config.recipe.optimizer = *findOptimizer(isAdam ? "adam" : "adamw");
  if (isAdam)
    reader.decide(isDecoupled, "decay is part of the gradient");
  else if (known.name == "adam")
    reader.decide(kOptimizerType, "AdamW: 'Adam' of DeepSpeed is AdamW unless "
                                  "adam_w_mode is false");
  else
    reader.decide(kOptimizerType, "AdamW");
  if (reader.find(getOptimizerPath("torch_adam")))
    reader.decide(getOptimizerPath("torch_adam"), "the same formula");
  // torch.optim.AdamW has another default than DeepSpeed's.
  readHyperParameter(reader, "weight_decay", "wd",
                     isTorch && !isAdam ? 0.01 : 0);
  readBetas(reader, known);
  readHyperParameter(reader, "eps", "eps", 1e-8);
}

void zero::readOptimizer(ConfigReader &reader) {
  std::optional<StringRef> type = reader.getString(kOptimizerType);
  if (!type)
    return reader.fail(kOptimizerType,
                       "so the training script makes the optimizer; add "
                       "--set=optimizer.type=AdamW, and its parameters such as "
                       "--set=optimizer.params.lr=3e-4");
  auto *known = llvm::find_if(kKnown, [&](const KnownOptimizer &one) {
    return type->equals_insensitive(one.name);
  });
  if (known == std::end(kKnown))
    return reader.fail(kOptimizerType,
                       "expected AdamW, Adam, Lion or SGD; any other "
                       "update by element can be written as a "
                       "zero.optimizer");
  if (known->name == "sgd" && *type != "SGD")
    return reader.fail(kOptimizerType,
                       "expected SGD: DeepSpeed takes this name from "
                       "torch.optim, which has no optimizer of another "
                       "spelling");
  if (!checkOptimizerParameters(reader, *known))
    return;
  readHyperParameter(reader, "lr", "lr", known->lr);
  if (known->keys.data() == kAdamKeys)
    return readAdam(reader, *known);
  reader.config.recipe.optimizer = *findOptimizer(known->text);
  reader.decide(kOptimizerType, known->text);
  readHyperParameter(reader, "weight_decay", "wd", 0);
  if (known->name == "lion")
    readBetas(reader, *known);
  else
    readHyperParameter(reader, "momentum", "momentum", 0);
}
