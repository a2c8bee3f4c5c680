//===- LibraryCache.cpp - Libraries of steps that run ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/LibraryCache.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero;

LibraryCache::~LibraryCache() {
  for (const std::string &file : files)
    llvm::sys::fs::remove(file);
}

std::string LibraryCache::find(ModuleOp scheduled,
                               const CompileOptions &options,
                               std::string &message) {
  std::string source;
  llvm::raw_string_ostream(source) << options.name << " " << options.target.cpu
                                   << " " << options.cuda.has_value() << "\n"
                                   << scheduled;
  std::string &path = pathsBySource[source];
  if (path.empty())
    path = add(scheduled, options, message);
  return path;
}

std::string LibraryCache::add(ModuleOp scheduled, const CompileOptions &options,
                              std::string &message) {
  FailureOr<CompiledStep> compiled = compileStep(scheduled, options);
  if (failed(compiled))
    return ""; // diagnosed
  SmallString<128> path;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile(compiled->name, "so", path)) {
    message = "cannot create a temporary file: " + error.message();
    return "";
  }
  files.push_back(path.str().str());
  return succeeded(writeLibrary(*compiled, path, message)) ? files.back() : "";
}
