//===- StepSource.h - Where the step of a command line is -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_STEPSOURCE_H
#define ZERO_TOOLS_IMPORT_STEPSOURCE_H

#include "tools/import/ImportFlags.h"
#include "tools/recipe/RecipeFlags.h"

namespace zero {

/// A step that a command line names in one of three ways: as a file, by
/// --parameters and --recipe, or by --import-deepspeed and --model.
class StepSource {
public:
  /// |tool| names the program.
  StepSource(llvm::StringRef tool, llvm::cl::OptionCategory &category);

  /// Imports a step called |name|, if one is to be imported. Options of
  /// |settings| that the command line does not have are then those of the
  /// configuration. Errors go to |errors|.
  mlir::LogicalResult import(LowerSettings &settings, llvm::StringRef name,
                             Errors &errors);
  /// The text of the step, which has |name| if a recipe describes it. Null,
  /// with |code| and |message|, on an error.
  std::unique_ptr<llvm::MemoryBuffer> open(const LowerSettings &settings,
                                           llvm::StringRef name, ExitCode &code,
                                           std::string &message);

  /// The imported step with a unit for each layer, as stage 3 wants it. Null
  /// with a |message| on an error, and without one if nothing is imported.
  std::unique_ptr<llvm::MemoryBuffer> importUnits(const LowerSettings &settings,
                                                  llvm::StringRef name,
                                                  std::string &message) const;

private:
  std::string tool;
  llvm::cl::opt<std::string> input;
  RecipeFlags recipe;
  ImportFlags imports;
  std::unique_ptr<llvm::MemoryBuffer> imported;
};

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_STEPSOURCE_H
