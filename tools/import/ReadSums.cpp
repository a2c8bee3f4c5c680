//===- ReadSums.cpp - Sums over ranks, and their norm ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"
#include "tools/import/ReadJson.h"

using namespace zero;

/// A mean is a mean, wherever its division happens. These keys move it.
static void readFactors(ConfigReader &reader) {
  if (reader.find("prescale_gradients"))
    reader.decide("prescale_gradients", "the same mean; the step divides "
                                        "after the sum");
  constexpr llvm::StringLiteral kFactor = "gradient_predivide_factor";
  if (!reader.find(kFactor))
    return;
  if (reader.getConstant(kFactor, 1, 0) == 0)
    return reader.fail(kFactor, "expected more than 0");
  reader.decide(kFactor, "the same mean; the step divides after the sum");
}

void zero::readSums(ConfigReader &reader) {
  Recipe &recipe = reader.config.recipe;
  constexpr llvm::StringLiteral kOp = "gradient_allreduce_op";
  std::string op = reader.getString(kOp).value_or("mean").lower();
  if (op != "mean" && op != "sum")
    return reader.fail(kOp, "expected mean or sum");
  recipe.isSumOfRanks = op == "sum";
  reader.decide(kOp, recipe.isSumOfRanks ? "gradients of ranks are added"
                                         : "the mean over ranks");
  readFactors(reader);
  constexpr llvm::StringLiteral kClip = "gradient_clipping";
  if (reader.isAuto(kClip)) {
    recipe.maxNorm.emplace().input = "max_norm";
    return reader.decide(kClip, "clips to the norm that is the input max_norm "
                                "of apply");
  }
  if (reader.isNull(kClip))
    return reader.fail(kClip, "expected a number, such as 1.0; 0 is no clip");
  double max = reader.getConstant(kClip, 1, 0);
  if (max == 0)
    return reader.decide(kClip, "no clip");
  recipe.maxNorm.emplace().number = max;
  reader.decide(kClip, "clips to norm " + formatNumber(max) +
                           (reader.find(kClip)
                                ? ""
                                : "; before 2026-06 the default was no clip"));
}
