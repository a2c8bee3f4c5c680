//===- Errors.h - What a tool reports as an error ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All tools print errors in one form, have one JSON schema for them and one
// meaning of exit codes.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_ERRORS_H
#define ZERO_TOOLS_DRIVER_ERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"

namespace zero {

/// --help of every tool explains these.
enum class ExitCode {
  done = 0,
  failed = 1,      // the input is wrong, or a check failed
  usage = 2,       // the command line is wrong
  environment = 3, // a file cannot be read or written, ...
  notCompared = 4, // a lowered step is consistent; no step was given beside it
};

/// The text for --help.
extern const char *const kExitCodes;

/// The file, line and column that a location names; line 0 where it is about
/// the whole file, and no file where it is about none.
struct Place {
  explicit Place(mlir::Location location);

  std::string file;
  int64_t line = 0;
  int64_t column = 0;
};

/// The number of |file| in |sources|, which is opened if it is not there; 0 if
/// it cannot be.
unsigned findBuffer(llvm::SourceMgr &sources, const std::string &file);

/// Prints |diagnostic| and its notes. Lines of |sources| are quoted up to 160
/// columns around the place.
void printDiagnostic(mlir::Diagnostic &diagnostic, llvm::SourceMgr &sources);

/// The errors of a run. Each is printed at once or kept for JSON:
///
///   {"message": "...", "file": "a.mlir", "line": 1, "column": 2,
///    "notes": [{"message": "...", "file": ..., "line": ..., "column": ...}]}
///
/// An error about no file has none; an error about a whole file has no line. An
/// error that is reported a second time is dropped.
class Errors {
public:
  explicit Errors(llvm::StringRef tool) : tool(tool) {}

  /// From here on errors are kept and not printed.
  void keepForJson() { isJson = true; }
  bool areForJson() const { return isJson; }
  /// The same, and warnings and remarks are dropped: nothing is printed.
  void keepSilently() { isJson = isSilent = true; }

  /// An error about no file.
  void add(ExitCode code, const llvm::Twine &message);
  /// The same where stderr has it already.
  void addPrinted(ExitCode code, const llvm::Twine &message);
  /// A diagnostic about the input. Only errors are kept; warnings and remarks
  /// are printed for JSON, too.
  void add(mlir::Diagnostic &diagnostic, llvm::SourceMgr &sources);

  llvm::StringRef getTool() const { return tool; }
  bool empty() const { return list.empty(); }
  /// What the first error makes of the run.
  ExitCode getCode() const { return code; }
  llvm::StringRef getFirstMessage() const;
  const llvm::json::Array &getList() const { return list; }

private:
  /// False where |error| has been reported.
  bool keep(ExitCode code, llvm::json::Object error);

  std::string tool;
  bool isJson = false;
  bool isSilent = false;
  ExitCode code = ExitCode::done;
  llvm::json::Array list;
  llvm::StringSet<> seen;
};

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_ERRORS_H
