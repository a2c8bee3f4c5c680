//===- WriteFile.cpp - Writes a file whole or not at all ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/library/WriteFile.h"

#include "llvm/Support/FileSystem.h"

using llvm::StringRef;

llvm::LogicalResult zero::writeFile(StringRef path, StringRef text,
                                    std::string &message) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << text;
    os.close();
    error = os.error();
    // Otherwise the stream would end the process.
    os.clear_error();
    if (error)
      llvm::sys::fs::remove(path);
  }
  if (!error)
    return llvm::success();
  message = "cannot write '" + path.str() + "': " + error.message();
  return llvm::failure();
}
