//===- RecipeFlags.h - The step that options describe -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_RECIPE_RECIPEFLAGS_H
#define ZERO_TOOLS_RECIPE_RECIPEFLAGS_H

#include "tools/driver/Driver.h"
#include "tools/driver/Tool.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"

namespace zero {

/// --parameters and --recipe: a step from a list of parameters.
class RecipeFlags {
public:
  explicit RecipeFlags(llvm::cl::OptionCategory &category);

  /// Whether one of the options is there.
  bool isGiven() const;

  /// Writes the step called |name| as writeListedStep does. Null, with |code|
  /// and |message|, if the options are wrong. |tool| names the program,
  /// for the hint about stdin.
  std::unique_ptr<llvm::MemoryBuffer>
  write(llvm::StringRef tool, const MeshAxes &mesh, llvm::StringRef name,
        ExitCode &code, std::string &message) const;

private:
  llvm::cl::opt<std::string> parameters, recipe;
};

/// What a list of parameters looks like, for --help.
llvm::StringRef describeParameterLists();

} // namespace zero

#endif // ZERO_TOOLS_RECIPE_RECIPEFLAGS_H
