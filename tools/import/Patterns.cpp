//===- Patterns.cpp - The parameters that a pattern names -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace zero;

LogicalResult
zero::forEachMatch(StringRef option, StringRef pattern, ParameterList &list,
                   llvm::function_ref<void(ListedParameter &)> function,
                   std::string &message) {
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
  if (!glob) {
    message = ("--" + option + ": the pattern '" + pattern +
               "' is wrong: " + toString(glob.takeError()))
                  .str();
    return failure();
  }
  bool isUsed = false;
  for (ListedParameter &parameter : list.parameters)
    if (glob->match(parameter.name)) {
      function(parameter);
      isUsed = true;
    }
  if (!isUsed)
    message =
        ("--" + option + ": no parameter matches '" + pattern + "'").str();
  return success(isUsed);
}
