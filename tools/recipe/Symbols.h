//===- Symbols.h - The symbols of a step that is written --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_RECIPE_SYMBOLS_H
#define ZERO_TOOLS_RECIPE_SYMBOLS_H

#include "tools/recipe/Recipe.h"

#include "llvm/ADT/StringSet.h"

namespace zero {

class Symbols {
public:
  /// A symbol, quoted where MLIR wants that.
  std::string symbol(llvm::StringRef name);
  /// Takes |name|. False if another symbol has this name.
  bool take(llvm::StringRef name) { return taken.insert(name).second; }
  /// |name|, or with |suffix| if another symbol has this name. Parameters have
  /// the names that the caller knows.
  std::string unique(std::string name, llvm::StringRef suffix) {
    while (!take(name))
      name += suffix;
    return symbol(name);
  }

private:
  mlir::MLIRContext context;
  llvm::StringSet<> taken;
};

/// The units of |list|, in the order of their first parameters. Each is
/// gathered in |gatherDtype|; empty: in the types of its parameters.
std::string writeUnits(const ParameterList &list, llvm::StringRef gatherDtype,
                       Symbols &symbols);

} // namespace zero

#endif // ZERO_TOOLS_RECIPE_SYMBOLS_H
