//===- WriteStep.cpp - The files of a compiled step -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-compile/WriteStep.h"

#include "codegen/library/WriteFile.h"
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

namespace {
/// Writes files to one folder.
class Writer {
public:
  Writer(StringRef folder, std::string &message)
      : folder(folder), message(message) {}

  template <typename Write>
  LogicalResult add(const llvm::Twine &name, Write write) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    written.files.push_back(path.str().str());
    return outputs.add(path, write, message);
  }
  LogicalResult addText(const llvm::Twine &name, StringRef text) {
    return add(name, [this, text](StringRef path) {
      return writeFile(path, text, message);
    });
  }
  /// Adds the other two files of a step, and moves all to their places.
  FailureOr<WrittenStep> finish(StringRef name, StringRef header,
                                std::string plan) {
    written.plan = std::move(plan);
    if (failed(addText(name + ".h", header)) ||
        failed(addText(name + ".plan.json", written.plan)) ||
        failed(outputs.commit(message)))
      return failure();
    return std::move(written);
  }

private:
  StringRef folder;
  std::string &message;
  WrittenStep written;
  Outputs outputs;
};
} // namespace

FailureOr<WrittenStep>
zero::writeStep(const CompiledStep &step, StringRef folder, bool isLibrary,
                llvm::function_ref<FailureOr<ProofNote>()> finishProof,
                ExitCode &code, std::string &message) {
  code = ExitCode::environment;
  if (failed(createFolder(folder, message)))
    return failure();
  Writer writer(folder, message);
  Validation none;
  none.skipped = {"an object is not linked"};
  llvm::json::Object validated = none.toJson();
  auto link = [&](StringRef path) {
    return linkStep(step, path, validated, code, message);
  };
  if (failed(isLibrary ? writer.add("lib" + step.name + ".so", link)
                       : writer.addText(step.name + ".o", step.code)))
    return failure();
  FailureOr<ProofNote> proof = finishProof();
  if (failed(proof))
    return failure();
  code = ExitCode::environment;
  return writer.finish(step.name, step.header,
                       step.getPlan(*proof, std::move(validated)));
}

FailureOr<WrittenStep> zero::writeOutput(const CompileOutput &output,
                                         StringRef folder,
                                         std::string &message) {
  if (failed(createFolder(folder, message)))
    return failure();
  Writer writer(folder, message);
  if (failed(writer.addText("lib" + output.name + ".so", output.library)))
    return failure();
  return writer.finish(output.name, output.header, output.plan);
}
