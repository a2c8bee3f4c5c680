//===- zero-work.cpp - Compiles steps in processes of their own -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   zero-work STEP OPTIONS [STEP OPTIONS ...]
//
// For work.py, under valgrind, which spends most of its time on code that runs
// for the first time. So the first step is compiled in this process. Each step
// is then compiled in a child, which has valgrind's translations; the first
// child compiles nothing and counts what all of them inherit. The process
// numbers of the children are printed, one a line.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Lower.h"
#include "codegen/library/Compile.h"
#include "tools/driver/Driver.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace zero;

/// Does what zero-compile does with the step in |path|, in one process.
static LogicalResult compile(StringRef path, StringRef options) {
  std::unique_ptr<LowerOptions> lowerOptions =
      LowerOptions::createFromString(options);
  if (!lowerOptions)
    return failure();
  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCodegenDialects(registry);
  // A child has no other threads than the one that forked.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  Errors errors("zero-work");
  LoadedStep loaded(context, path, /*name=*/"", "compiled", errors);
  ModuleOp module = loaded.getModule();
  if (!module)
    return failure();
  std::unique_ptr<ProvedStep> proved = lowerProved(module, *lowerOptions);
  if (!proved || failed(proveLowered(*proved, module)))
    return failure();
  CompileOptions compileOptions;
  compileOptions.target.cpu = "x86-64-v3";
  FailureOr<CompiledStep> step = compileStep(module, compileOptions);
  SmallString<128> library;
  if (failed(step) ||
      llvm::sys::fs::createTemporaryFile("zero-work", "so", library))
    return failure();
  llvm::FileRemover remover(library);
  std::string message;
  LogicalResult written = writeLibrary(*step, library, message);
  llvm::errs() << message;
  return written;
}

/// Runs |work| in a child; whether it succeeds there.
template <typename Work> static bool runInChild(const Work &work) {
  pid_t child = fork();
  if (child == 0)
    _exit(succeeded(work()) ? EXIT_SUCCESS : EXIT_FAILURE);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return false;
  llvm::outs() << child << "\n";
  return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  if (argc < 3 || argc % 2 == 0) {
    llvm::errs() << "usage: zero-work STEP OPTIONS [STEP OPTIONS ...]\n";
    return EXIT_FAILURE;
  }
  if (failed(compile(argv[1], argv[2])) ||
      !runInChild([] { return success(); }))
    return EXIT_FAILURE;
  for (int i = 1; i < argc; i += 2)
    if (!runInChild([&] { return compile(argv[i], argv[i + 1]); })) {
      llvm::errs() << "zero-work: cannot compile " << argv[i] << "\n";
      return EXIT_FAILURE;
    }
  return EXIT_SUCCESS;
}
