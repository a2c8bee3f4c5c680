//===- Compilation.h - From the text of a step to code ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_COMPILER_COMPILATION_H
#define ZERO_TOOLS_COMPILER_COMPILATION_H

#include "codegen/validate/Child.h"
#include "tools/compiler/Settings.h"

namespace zero {

/// One compile, of zero-compile or of a client. Errors go to the list of the
/// caller.
class Compilation {
public:
  Compilation(const CompileSettings &settings, Errors &errors);

  /// Reads |step|, and |reference|, the step as written, if the proof is to
  /// compare with that. Checks that the settings fit the steps.
  mlir::LogicalResult load(std::unique_ptr<llvm::MemoryBuffer> step,
                           std::unique_ptr<llvm::MemoryBuffer> reference);
  /// Lowers the step. Unless the settings say otherwise, proves the step as
  /// written before, and begins to prove the lowered one.
  mlir::LogicalResult lower(const LowerOptions &options);
  /// Compiles the lowered step, while it is proved, or after that if there is a
  /// reference. The result refers to the module of this object.
  mlir::FailureOr<CompiledStep> compile(const CompileOptions &options);
  /// Waits for the proof of the lowered step, if there is one. Nothing that was
  /// made of the step may leave before.
  mlir::FailureOr<ProofNote> finishProof();

  mlir::ModuleOp getModule() { return step->getModule(); }

private:
  /// Adds an error.
  mlir::LogicalResult fail(ExitCode code, const llvm::Twine &message);
  mlir::LogicalResult check(llvm::StringRef file);

  const CompileSettings &settings;
  Errors &errors;
  mlir::MLIRContext context;
  std::optional<LoadedStep> step, reference;
  std::unique_ptr<ProvedStep> proved; // the step as written
  std::optional<Child> proving;       // the lowered step
  std::optional<ProofNote> note;      // of the finished proof
};

} // namespace zero

#endif // ZERO_TOOLS_COMPILER_COMPILATION_H
