//===- Tool.h - How every tool begins and ends ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_TOOL_H
#define ZERO_TOOLS_DRIVER_TOOL_H

#include "tools/driver/Errors.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

namespace zero {

/// What every tool needs of its process, |name| is the tool's:
/// - --version prints our version beside LLVM's,
/// - a write beyond the limit of a file's size (ulimit -f) is an error of that
///   write, and no signal,
/// - text that does not reach stdout is an error, with code 3.
void initProcess(const char *name);

/// A tool with options of its own.
class Tool {
public:
  Tool(const char *name, int &argc, char **&argv);

  /// Reads the command line; prints and exits for --help and --version. False
  /// where it is wrong; |json|, if it is given, is right nevertheless.
  bool parse(llvm::cl::OptionCategory &category, const llvm::Twine &overview,
             const llvm::cl::opt<bool> &json);

  /// Adds an error; the result is finish().
  int fail(ExitCode code, const llvm::Twine &message);
  /// Prints |result| and the errors, where they are to be JSON. The result is
  /// the exit code, which is 0 where there is no error.
  int finish(llvm::json::Object result = {});

  Errors errors;

private:
  int &argc;
  char **&argv;
  llvm::InitLLVM init;
};

/// Reads the command line of a tool for which every option of LLVM is one, and
/// exits where it is wrong.
void parseAllOptions(const char *name, int argc, char **argv,
                     const llvm::Twine &overview);

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_TOOL_H
