//===- Outputs.cpp - Several files, all of them or none -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-compile/Outputs.h"

#include "llvm/Support/Error.h"

using namespace mlir;
using namespace zero;

Outputs::~Outputs() {
  for (File &file : files)
    llvm::consumeError(file.written.discard());
}

static LogicalResult fail(StringRef path, llvm::Error error,
                          std::string &message) {
  message =
      "cannot write '" + path.str() + "': " + llvm::toString(std::move(error));
  return failure();
}

LogicalResult Outputs::add(StringRef path,
                           llvm::function_ref<LogicalResult(StringRef)> write,
                           std::string &message) {
  // The one reason for which a file could be written and not moved.
  if (llvm::sys::fs::is_directory(path))
    return fail(
        path,
        llvm::errorCodeToError(std::make_error_code(std::errc::is_a_directory)),
        message);
  auto file = llvm::sys::fs::TempFile::create(path + ".%%%%%%");
  if (!file)
    return fail(path, file.takeError(), message);
  files.push_back({std::move(*file), path.str()});
  const std::string &temporary = files.back().written.TmpName;
  if (succeeded(write(temporary)))
    return success();
  // The user asked for |path|.
  for (size_t at; (at = message.find(temporary)) != std::string::npos;)
    message.replace(at, temporary.size(), path.str());
  return failure();
}

LogicalResult Outputs::commit(std::string &message) {
  for (File &file : files)
    if (llvm::Error error = file.written.keep(file.path))
      return fail(file.path, std::move(error), message);
  files.clear();
  return success();
}
