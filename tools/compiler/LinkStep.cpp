//===- LinkStep.cpp - A compiled step as a library ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/LinkStep.h"

#include "codegen/validate/Validate.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace zero;

LogicalResult zero::linkStep(const CompiledStep &step, StringRef path,
                             llvm::json::Object &validated, ExitCode &code,
                             std::string &message) {
  code = ExitCode::environment;
  if (failed(writeLibrary(step, path, message)))
    return failure();
  code = ExitCode::failed;
  ValidateOptions options;
  options.cpu = step.cpu;
  options.hasGpuCode = step.cuda.has_value();
  Validation validation;
  LogicalResult result =
      validateLibrary(path, step.stages, options, validation, message);
  validated = validation.toJson();
  return result;
}

LogicalResult zero::linkStepInMemory(const CompiledStep &step,
                                     std::string &library,
                                     llvm::json::Object &validated,
                                     ExitCode &code, std::string &message) {
  code = ExitCode::environment;
  SmallString<128> folder;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  llvm::sys::path::append(folder, "zero-XXXXXX");
  // LLVM's function makes a folder that others may be able to write to.
  if (!::mkdtemp(const_cast<char *>(folder.c_str()))) {
    message = std::string("cannot create a temporary folder: ") +
              std::strerror(errno);
    return failure();
  }
  auto remove =
      llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  SmallString<128> path(folder);
  llvm::sys::path::append(path, "lib" + step.name + ".so");
  if (failed(linkStep(step, path, validated, code, message)))
    return failure();
  code = ExitCode::environment;
  auto content = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
  if (!content) {
    message =
        ("cannot read '" + path + "': " + content.getError().message()).str();
    return failure();
  }
  library = (*content)->getBuffer().str();
  return success();
}
