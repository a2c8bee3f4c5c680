//===- Cache.h - Steps that have been compiled before -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks of a job compile the same step. With a folder that they share, one
// of them compiles it, and the others wait for its file. The folder may be used
// by several machines and jobs, and files may be deleted at any time.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_COMPILER_CACHE_H
#define ZERO_TOOLS_COMPILER_CACHE_H

#include "tools/compiler/CompileText.h"
#include "tools/compiler/Settings.h"

namespace zero {

/// The file of one step in the folder that |settings| name.
class CacheEntry {
public:
  /// |step| and |reference| are the texts that are compiled.
  CacheEntry(const CompileSettings &settings, llvm::StringRef step,
             llvm::StringRef reference);
  ~CacheEntry();

  /// Reads the file. False where there is none, or a damaged one.
  bool read(CompileOutput &output) const;
  /// Waits until no other process compiles the step, at most for |limit|. A
  /// folder that cannot be locked is as if nobody else used it.
  mlir::LogicalResult lock(std::chrono::milliseconds limit,
                           std::string &message);
  mlir::LogicalResult write(const CompileOutput &output,
                            std::string &message) const;

private:
  std::string folder, path;
  int descriptor = -1; // of the lock
};

} // namespace zero

#endif // ZERO_TOOLS_COMPILER_CACHE_H
