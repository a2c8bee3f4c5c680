//===- ReadRecipe.cpp - The choices of a step, as a short text ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

#include "dialect/zero/StorageTypes.h"
#include "tools/driver/Nesting.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

StringRef zero::describeRecipes() {
  return "OPTIMIZER,ITEM,...: adam, adamw, adamw_torch, lion or sgd, or\n"
         "FILE.mlir with a zero.optimizer of your own; and\n"
         "max_norm=X or max_norm=@NAME: clip gradients to this norm, a\n"
         "number or the input NAME of apply;\n"
         "mean (default), sum, tokens: what a gradient is divided by;\n"
         "loss_divided: the caller divides the loss by the number of\n"
         "backward passes; one_backward: a step has one backward pass;\n"
         "accumulator=DTYPE (default f32);\n"
         "reduce_dtype=DTYPE: gradients travel in this type;\n"
         "gather_dtype=DTYPE: parameters of units do, at stage 3;\n"
         "nonfinite=skip|error|apply;\n"
         "loss_scale=torch|deepspeed|X: losses arrive multiplied by a loss\n"
         "scale with the rule of that library, or by X;\n"
         "HYPER=X: a hyperparameter, such as wd=0.1;\n"
         "HYPER=@NAME: the hyperparameter is the input NAME of apply.\n"
         "lr is an input unless it is given.\n"
         "The same as JSON: {\"optimizer\": \"adamw\", \"max_norm\": 1,\n"
         "\"normalization\": \"mean\", \"loss_divided\": true, \"wd\": 0.1,\n"
         "\"lr\": \"NAME\"}";
}

/// Items that have a value and are no hyperparameters.
static constexpr StringRef kItemsWithValue[] = {"max_norm",     "accumulator",
                                                "reduce_dtype", "gather_dtype",
                                                "nonfinite",    "loss_scale"};

/// As much of |text| of a user as a message shows.
static std::string cut(StringRef text) {
  constexpr size_t kMost = 80;
  return text.size() <= kMost ? text.str()
                              : (text.take_front(kMost) + "...").str();
}

static LogicalResult readNumber(StringRef item, StringRef value, double &number,
                                std::string &message) {
  if (!value.getAsDouble(number) && std::isfinite(number))
    return success();
  message =
      "--recipe: '" + cut(item) + "' needs a number, got '" + cut(value) + "'";
  return failure();
}

static LogicalResult choose(StringRef item, StringRef value,
                            ArrayRef<StringRef> choices, std::string &chosen,
                            std::string &message) {
  if (is_contained(choices, value)) {
    chosen = value.str();
    return success();
  }
  message = ("--recipe: '" + item + "' must be " + llvm::join(choices, ", ") +
             ", got '" + cut(value) + "'")
                .str();
  return failure();
}

/// A number, or the name of an input behind '@'.
static LogicalResult readHyper(StringRef item, StringRef value,
                               HyperValue &hyper, std::string &message) {
  if (!value.consume_front("@"))
    return readNumber(item, value, hyper.number, message);
  hyper.input = value.str();
  if (!value.empty())
    return success();
  message = "--recipe: '" + cut(item) + "=@' needs the name of an input";
  return failure();
}

/// An item with a value, NAME=VALUE.
static LogicalResult readValue(StringRef item, StringRef value, Recipe &recipe,
                               std::string &message) {
  if (item == "max_norm") {
    HyperValue &max = recipe.maxNorm.emplace();
    if (failed(readHyper(item, value, max, message)))
      return failure();
    if (max.input.empty() && max.number <= 0) {
      message = "--recipe: max_norm must be positive, got " + cut(value) +
                "; leave max_norm out for no clipping";
      return failure();
    }
    return success();
  }
  if (item == "accumulator")
    return choose(item, value, getStorageTypeNames(), recipe.accumulator,
                  message);
  if (item == "reduce_dtype")
    return choose(item, value, getStorageTypeNames(), recipe.reduceDtype,
                  message);
  if (item == "gather_dtype")
    return choose(item, value, getStorageTypeNames(), recipe.gatherDtype,
                  message);
  if (item == "nonfinite")
    return choose(item, value, {"skip", "error", "apply"}, recipe.nonfinite,
                  message);
  if (item == "loss_scale") {
    recipe.lossScale = getLossScaleText(value);
    if (!recipe.lossScale.empty())
      return success();
    message = "--recipe: 'loss_scale' must be torch, deepspeed or a positive "
              "number, got '" +
              cut(value) + "'";
    return failure();
  }
  return readHyper(item, value, recipe.hyper[item.str()], message);
}

/// The item that |key| and |value| of JSON stand for; empty for none.
static std::string getItem(StringRef key, const json::Value &value) {
  std::string text;
  if (key == "normalization" && value.getAsString())
    return value.getAsString()->str();
  if ((key == "loss_divided" || key == "one_backward") && value.getAsBoolean())
    return *value.getAsBoolean() ? key.str() : "";
  if (std::optional<StringRef> name = value.getAsString())
    text = (llvm::is_contained({"accumulator", "loss_scale", "reduce_dtype",
                                "gather_dtype", "nonfinite"},
                               key)
                ? *name
                : "@" + *name)
               .str();
  else
    llvm::raw_string_ostream(text) << value;
  return (key + "=" + text).str();
}

/// Splits |text| to an optimizer and items, which are JSON or short.
static LogicalResult split(StringRef text, std::vector<std::string> &items,
                           std::string &message) {
  if (!text.ltrim().starts_with("{")) {
    for (StringRef item : llvm::split(text, ','))
      items.push_back(item.str());
    return success();
  }
  if (isNestedDeeply(text)) {
    message = "--recipe: is nested more than " + std::to_string(kDeepestText) +
              " levels deep";
    return failure();
  }
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    message = "--recipe: " + toString(parsed.takeError());
    return failure();
  }
  const json::Object &object = *parsed->getAsObject();
  items.push_back(object.getString("optimizer").value_or("").str());
  for (const auto &[key, value] : object)
    if (std::string item = getItem(key, value);
        StringRef(key) != "optimizer" && !item.empty())
      items.push_back(std::move(item));
  // An object has no order, and messages name the first error.
  llvm::sort(items.begin() + 1, items.end());
  return success();
}

/// The optimizer that |text| is, names, or names the file of.
static LogicalResult chooseOptimizer(StringRef text, OpenFile open,
                                     RecipeOptimizer &optimizer, ExitCode &code,
                                     std::string &message) {
  if (text.contains("zero.optimizer") && text.contains('{')) {
    code = ExitCode::failed;
    return readOptimizer(text, "<optimizer>", optimizer, message);
  }
  if (open && text.ends_with(".mlir")) {
    code = ExitCode::environment;
    std::unique_ptr<llvm::MemoryBuffer> file = open(text, message);
    if (!file)
      return failure();
    code = ExitCode::failed;
    return readOptimizer(file->getBuffer(), text, optimizer, message);
  }
  std::optional<RecipeOptimizer> found = findOptimizer(text);
  if (found) {
    optimizer = std::move(*found);
    return success();
  }
  message = "--recipe begins with an optimizer, " + listOptimizers() +
            (open ? ", or a file such as own.mlir" : "") + ", got '" +
            cut(text) + "'";
  return failure();
}

LogicalResult zero::readRecipe(StringRef text, OpenFile open, Recipe &recipe,
                               ExitCode &code, std::string &message) {
  code = ExitCode::usage;
  std::vector<std::string> items;
  if (failed(split(text, items, message)) ||
      failed(chooseOptimizer(items[0], open, recipe.optimizer, code, message)))
    return failure();
  for (const OptimizerHyper &hyper : recipe.optimizer.hyper)
    if (llvm::is_contained(kItemsWithValue, hyper.name)) {
      code = ExitCode::failed;
      message = "hyperparameter '" + hyper.name + "' of " +
                recipe.optimizer.name +
                " has the name of an item of a recipe; give it another name";
      return failure();
    }
  code = ExitCode::usage;
  for (StringRef entry : ArrayRef(items).drop_front()) {
    auto [item, value] = entry.split('=');
    if (entry == "mean")
      recipe.normalization = Normalization::mean;
    else if (entry == "sum")
      recipe.normalization = Normalization::sum;
    else if (entry == "tokens")
      recipe.normalization = Normalization::tokens;
    else if (entry == "loss_divided")
      recipe.isLossDivided = true;
    else if (entry == "one_backward")
      recipe.oneBackward = true;
    else if (entry == item) {
      message = "--recipe: unknown item '" + cut(entry) +
                "', expected mean, sum, tokens, loss_divided, one_backward or "
                "NAME=VALUE";
      return failure();
    } else if (failed(readValue(item, value, recipe, message)))
      return failure();
  }
  if (recipe.isLossDivided && recipe.normalization != Normalization::mean) {
    message = "--recipe: loss_divided is for a mean over backward passes; "
              "leave one of the items out";
    return failure();
  }
  const std::vector<OptimizerHyper> &known = recipe.optimizer.hyper;
  for (const auto &entry : recipe.hyper) {
    const std::string &name = entry.first;
    if (llvm::any_of(known, [&](const auto &one) { return one.name == name; }))
      continue;
    message =
        "--recipe: '" + cut(name) + "' is no item and no hyperparameter of " +
        recipe.optimizer.name + ", which has " +
        llvm::join(
            llvm::map_range(known, [](const auto &one) { return one.name; }),
            ", ");
    return failure();
  }
  return success();
}
