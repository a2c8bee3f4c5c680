//===- LibraryCache.h - Libraries of steps that run -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_LIBRARYCACHE_H
#define ZERO_TOOLS_ZERO_RUN_LIBRARYCACHE_H

#include "codegen/library/Compile.h"

#include <map>

namespace zero {

/// Libraries that steps were compiled to. The files go with the cache.
class LibraryCache {
public:
  ~LibraryCache();

  /// Compiles |scheduled|, unless an equal module was compiled with equal
  /// options; the path of the library. On an error, which is diagnosed or in
  /// |message|, the result is empty.
  std::string find(mlir::ModuleOp scheduled, const CompileOptions &options,
                   std::string &message);
  /// Compiles |scheduled| whether or not it was compiled before.
  std::string add(mlir::ModuleOp scheduled, const CompileOptions &options,
                  std::string &message);

private:
  std::vector<std::string> files;
  std::map<std::string, std::string> pathsBySource;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_LIBRARYCACHE_H
