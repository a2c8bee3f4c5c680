//===- LinkLibrary.cpp - An object as a shared library --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitObject.h"

#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;

static std::string findLinker() {
  for (StringRef name :
       {"ld.lld-19", "/usr/lib/llvm-19/bin/ld.lld", "ld.lld", "ld"})
    if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name))
      return *path;
  return "";
}

/// Creates an empty file, which |remover| deletes.
static LogicalResult createTemporary(StringRef suffix,
                                     llvm::FileRemover &remover,
                                     SmallString<128> &path,
                                     std::string &errorMessage) {
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("zero", suffix, path)) {
    errorMessage = "cannot create a temporary file: " + error.message();
    return failure();
  }
  remover.setFile(path);
  return success();
}

/// A version script that exports |symbols| and nothing else.
static LogicalResult writeVersionScript(StringRef path,
                                        ArrayRef<std::string> symbols,
                                        std::string &errorMessage) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  os << "{\n  global:\n";
  // Quoted, because a name could be a pattern otherwise.
  for (const std::string &symbol : symbols)
    os << "    \"" << symbol << "\";\n";
  os << "  local: *;\n};\n";
  os.close();
  if (!error)
    error = os.error();
  if (!error)
    return success();
  os.clear_error();
  errorMessage = "cannot write '" + path.str() + "': " + error.message();
  return failure();
}

/// Checks the library |path| after a successful link. Returns the error, or "".
static std::string findFault(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return file.getError().message();
  if ((*file)->getBufferSize() == 0)
    return "it is empty";
  if (llvm::identify_magic((*file)->getBuffer()) !=
      llvm::file_magic::elf_shared_object)
    return "it is no shared library";
  return "";
}

LogicalResult zero::linkSharedLibrary(StringRef objectPath,
                                      StringRef outputPath,
                                      ArrayRef<std::string> exportedSymbols,
                                      std::string &errorMessage) {
  std::string linker = findLinker();
  if (linker.empty()) {
    errorMessage = "no linker found; looked for ld.lld-19, ld.lld and ld (on "
                   "Debian: package lld-19)";
    return failure();
  }
  StringRef directory = llvm::sys::path::parent_path(outputPath);
  if (directory.empty())
    directory = ".";
  if (std::error_code error =
          llvm::sys::fs::access(directory, llvm::sys::fs::AccessMode::Write)) {
    errorMessage =
        "cannot write '" + outputPath.str() + "': " + error.message();
    return failure();
  }

  SmallString<128> messages, script;
  llvm::FileRemover messagesRemover, scriptRemover;
  if (failed(createTemporary("txt", messagesRemover, messages, errorMessage)))
    return failure();
  SmallVector<StringRef> arguments{linker,
                                   "-shared",
                                   "-z",
                                   "now",
                                   "-z",
                                   "noexecstack",
                                   "--build-id=none",
                                   "--no-undefined"};
  // On a full disk, a write to a mapped file raises a signal, and a write call
  // returns an error.
  if (llvm::sys::path::filename(linker).contains("lld"))
    arguments.push_back("--no-mmap-output-file");
  std::string scriptArgument;
  if (!exportedSymbols.empty()) {
    if (failed(createTemporary("map", scriptRemover, script, errorMessage)) ||
        failed(writeVersionScript(script, exportedSymbols, errorMessage)))
      return failure();
    scriptArgument = ("--version-script=" + script).str();
    arguments.push_back(scriptArgument);
  }
  arguments.append({"-o", outputPath, objectPath});

  std::string launchError;
  int status = llvm::sys::ExecuteAndWait(
      linker, arguments, /*Env=*/std::nullopt,
      /*Redirects=*/{StringRef(""), StringRef(messages), StringRef(messages)},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &launchError);
  std::string fault;
  if (status == 0 && (fault = findFault(outputPath)).empty())
    return success();
  errorMessage = linker + " could not link '" + outputPath.str() + "'";
  if (!fault.empty())
    errorMessage += ", and reported no error: " + fault;
  if (!launchError.empty())
    errorMessage += ": " + launchError;
  auto text = llvm::MemoryBuffer::getFile(messages);
  if (text && !(*text)->getBuffer().trim().empty())
    errorMessage += "\n" + (*text)->getBuffer().rtrim().str();
  return failure();
}
