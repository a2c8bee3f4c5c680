//===- FormatReal.cpp - Numbers as MLIR reads them ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero;

std::string zero::formatReal(double number) {
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*e", digits, number);
    double read = 0;
    if (!StringRef(text).getAsDouble(read) && read == number)
      break;
  }
  return text;
}
