//===- Outputs.h - Several files, all of them or none -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_COMPILE_OUTPUTS_H
#define ZERO_TOOLS_ZERO_COMPILE_OUTPUTS_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/FileSystem.h"

#include <string>
#include <vector>

namespace zero {

/// Files that belong together. Each is written beside its place, and they move
/// there when all are complete; whatever goes wrong, or on a signal, what was
/// there before stays.
class Outputs {
public:
  ~Outputs();

  /// Has |write| write a file that is to become |path|. |write| takes the path
  /// to write to, and leaves a message on an error; so does this.
  mlir::LogicalResult
  add(llvm::StringRef path,
      llvm::function_ref<mlir::LogicalResult(llvm::StringRef)> write,
      std::string &message);

  /// Moves all files, which are in one folder, to their places. The folder is
  /// locked meanwhile, so that the files of two processes do not mix.
  mlir::LogicalResult commit(std::string &message);

private:
  struct File {
    llvm::sys::fs::TempFile written;
    std::string path;
  };
  std::vector<File> files;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_COMPILE_OUTPUTS_H
