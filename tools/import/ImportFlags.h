//===- ImportFlags.h - The flags of an import -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_IMPORTFLAGS_H
#define ZERO_TOOLS_IMPORT_IMPORTFLAGS_H

#include "tools/import/Import.h"

#include "llvm/Support/CommandLine.h"

namespace zero {

/// --import-deepspeed and the flags beside it.
class ImportFlags {
public:
  explicit ImportFlags(llvm::cl::OptionCategory &category);

  /// Whether --import-deepspeed is there.
  bool isGiven() const { return config.getNumOccurrences() > 0; }
  /// Checks that no flag of an import is there without it.
  mlir::LogicalResult checkNone(std::string &message) const;
  /// What the flags say of |config|, whose step is called |name|. |mesh| is
  /// nothing where the user names none.
  ImportRequest getRequest(llvm::StringRef tool, llvm::StringRef config,
                           std::optional<MeshAxes> mesh,
                           llvm::StringRef name) const;

  /// Imports the step of --import-deepspeed. |change| is one more --set, or
  /// empty.
  mlir::LogicalResult import(llvm::StringRef tool, std::optional<MeshAxes> mesh,
                             llvm::StringRef name, ImportedStep &step,
                             Errors &errors, llvm::StringRef change = "") const;
  /// Whether a part of the step comes from stdin, which is read once.
  bool isFromStdin() const { return config == "-" || model == "-"; }

private:
  llvm::cl::opt<std::string> config, model;
  llvm::cl::list<std::string> changes, noDecay, frozen, shards, experts,
      pipelineStages;
  llvm::cl::opt<std::string> pipelineLayers;
};

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_IMPORTFLAGS_H
