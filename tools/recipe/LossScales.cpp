//===- LossScales.cpp - The loss scales that the tools contain ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace zero;

/// The files of examples/loss_scales, by name.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
    kLossScales[] = {
#include "LossScales.inc"
};

static StringRef findLossScale(StringRef name) {
  auto *found = llvm::find_if(
      kLossScales, [&](const auto &entry) { return entry.first == name; });
  return found == std::end(kLossScales) ? StringRef()
                                        : StringRef(found->second);
}

std::string zero::getLossScaleText(StringRef choice) {
  double number = 0;
  if (choice.getAsDouble(number))
    return choice == "static" ? "" : findLossScale(choice).str();
  if (!std::isfinite(number) || number <= 0)
    return "";
  std::string text = findLossScale("static").str();
  StringRef initial = "1024.0";
  return text.replace(text.find(initial), initial.size(), formatReal(number));
}
