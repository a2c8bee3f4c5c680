//===- Assemble.cpp - From PTX to a cubin ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmitPtx.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

std::string zero::findPtxas() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  auto home = llvm::sys::Process::GetEnv("CUDA_HOME");
  SmallString<128> path(home && !home->empty() ? *home : "/usr/local/cuda");
  llvm::sys::path::append(path, "bin", "ptxas");
  return llvm::sys::fs::can_execute(path) ? path.str().str() : "";
}

namespace {
/// A file that this object removes in its destructor.
struct TemporaryFile {
  explicit TemporaryFile(StringRef suffix)
      : error(llvm::sys::fs::createTemporaryFile("zero", suffix, path)),
        remover(path) {}
  SmallString<128> path;
  std::error_code error;
  llvm::FileRemover remover;
};
} // namespace

FailureOr<std::string> zero::assemble(StringRef ptxas, StringRef ptx,
                                      StringRef arch, std::string &message) {
  TemporaryFile source("ptx"), cubin("cubin"), log("log");
  for (const TemporaryFile *file : {&source, &cubin, &log})
    if (file->error) {
      message = "cannot create a temporary file: " + file->error.message();
      return failure();
    }
  std::error_code error;
  llvm::raw_fd_ostream os(source.path, error);
  os << ptx;
  os.close();
  if (os.has_error()) {
    message = "cannot write '" + source.path.str().str() +
              "': " + os.error().message();
    os.clear_error();
    return failure();
  }
  std::string archFlag = "-arch=" + arch.str();
  std::string why;
  int code = llvm::sys::ExecuteAndWait(
      ptxas, {ptxas, archFlag, "-o", cubin.path, source.path},
      /*Env=*/std::nullopt, {StringRef(), log.path.str(), log.path.str()},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &why);
  if (code == 0) {
    auto buffer = llvm::MemoryBuffer::getFile(cubin.path);
    if (buffer && (*buffer)->getBufferSize())
      return (*buffer)->getBuffer().str();
    why = "it wrote nothing";
  }
  if (auto text = llvm::MemoryBuffer::getFile(log.path))
    why += (*text)->getBuffer().rtrim().str();
  message =
      "'" + ptxas.str() + "' cannot assemble for " + arch.str() + ": " + why;
  return failure();
}
