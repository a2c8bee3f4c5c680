//===- Validate.h - Is a library the program it was made from? --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_VALIDATE_H
#define ZERO_CODEGEN_VALIDATE_VALIDATE_H

#include "codegen/host/Stages.h"

#include "llvm/Support/JSON.h"

namespace zero {

/// What a library is compared with.
struct ValidateOptions {
  std::string cpu;
  bool hasGpuCode = false;
  /// A library that runs longer is wrong.
  int64_t limitMilliseconds = 60'000;
};

/// What of a library was validated.
struct Validation {
  bool tables = false; // and calls of handlers
  int64_t kernels = 0;
  int64_t scalarPrograms = 0;
  int64_t inputs = 0; // at most, of each kernel and scalar program
  /// What was not validated, and why.
  std::vector<std::string> skipped;

  /// The part of the plan on the validation.
  llvm::json::Object toJson() const;
};

/// Loads the finished library |path| in a child process, and compares it with
/// the programs of all pipeline stages: the tables row by row, the calls of the
/// handlers one by one, and each kernel and scalar program on edge inputs with
/// the interpreter. |validation| says what was compared. On an error |message|
/// names the first difference.
mlir::LogicalResult validateLibrary(llvm::StringRef path,
                                    llvm::ArrayRef<StageProgram> stages,
                                    const ValidateOptions &options,
                                    Validation &validation,
                                    std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_VALIDATE_H
