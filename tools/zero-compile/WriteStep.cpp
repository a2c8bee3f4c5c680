//===- WriteStep.cpp - The files of a compiled step -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-compile/WriteStep.h"

#include "codegen/validate/Validate.h"
#include "tools/compiler/LinkStep.h"
#include "tools/zero-compile/Outputs.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace zero;

static LogicalResult createFolder(StringRef folder, std::string &message) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder)) {
    message = "cannot create folder '" + folder.str() + "': " + error.message();
    return failure();
  }
  if (llvm::sys::fs::is_directory(folder))
    return success();
  message = "'" + folder.str() + "' is no folder";
  return failure();
}

FailureOr<WrittenStep> zero::writeStep(const CompiledStep &step,
                                       StringRef folder, bool isLibrary,
                                       ExitCode &code, std::string &message) {
  code = ExitCode::environment;
  if (failed(createFolder(folder, message)))
    return failure();
  WrittenStep written;
  Outputs outputs;
  auto add = [&](const llvm::Twine &name, auto write) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    written.files.push_back(path.str().str());
    return outputs.add(path, write, message);
  };
  auto addText = [&](const llvm::Twine &name, StringRef text) {
    return add(name, [&message, text](StringRef path) {
      return writeFile(path, text, message);
    });
  };
  Validation none;
  none.skipped = {"an object is not linked"};
  llvm::json::Object validated = none.toJson();
  auto link = [&](StringRef path) {
    return linkStep(step, path, validated, code, message);
  };
  if (failed(isLibrary ? add("lib" + step.name + ".so", link)
                       : addText(step.name + ".o", step.code)))
    return failure();
  written.plan = step.getPlan(std::move(validated));
  code = ExitCode::environment;
  if (failed(addText(step.name + ".h", step.header)) ||
      failed(addText(step.name + ".plan.json", written.plan)) ||
      failed(outputs.commit(message)))
    return failure();
  return written;
}
