//===- ReadRecipe.cpp - The choices of a step, as a short text ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

#include "dialect/zero/StorageTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace zero;

StringRef zero::describeRecipes() {
  return "OPTIMIZER,ITEM,...: adam, adamw, lion or sgd, and\n"
         "max_norm=X or max_norm=@NAME: clip gradients to this norm, a\n"
         "number or the input NAME of apply;\n"
         "mean (default), sum, tokens: what a gradient is divided by;\n"
         "loss_divided: the caller divides the loss by the number of\n"
         "backward passes; accumulator=DTYPE (default f32);\n"
         "reduce_dtype=DTYPE; nonfinite=skip|error|apply;\n"
         "HYPER=X: a hyperparameter, such as wd=0.1;\n"
         "HYPER=@NAME: the hyperparameter is the input NAME of apply.\n"
         "lr is an input unless it is given";
}

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
  if (item == "nonfinite")
    return choose(item, value, {"skip", "error", "apply"}, recipe.nonfinite,
                  message);
  return readHyper(item, value, recipe.hyper[item.str()], message);
}

LogicalResult zero::readRecipe(StringRef text, Recipe &recipe,
                               std::string &message) {
  SmallVector<StringRef> items;
  text.split(items, ',');
  recipe.optimizer = items[0].str();
  if (getOptimizerText(items[0]).empty()) {
    message = "--recipe begins with an optimizer, " + listOptimizers() +
              ", got '" + cut(items[0]) + "'";
    return failure();
  }
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
    else if (entry == item) {
      message = "--recipe: unknown item '" + cut(entry) +
                "', expected mean, sum, tokens, loss_divided or NAME=VALUE";
      return failure();
    } else if (failed(readValue(item, value, recipe, message)))
      return failure();
  }
  if (recipe.isLossDivided && recipe.normalization != Normalization::mean) {
    message = "--recipe: loss_divided is for a mean over backward passes; "
              "leave one of the items out";
    return failure();
  }
  std::vector<OptimizerHyper> known = getOptimizerHyper(recipe.optimizer);
  for (const auto &entry : recipe.hyper) {
    const std::string &name = entry.first;
    if (llvm::any_of(known, [&](const auto &one) { return one.name == name; }))
      continue;
    message =
        "--recipe: '" + cut(name) + "' is no item and no hyperparameter of " +
        recipe.optimizer + ", which has " +
        llvm::join(
            llvm::map_range(known, [](const auto &one) { return one.name; }),
            ", ");
    return failure();
  }
  return success();
}
