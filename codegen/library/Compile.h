//===- Compile.h - From a scheduled module to a shared library --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_LIBRARY_COMPILE_H
#define ZERO_CODEGEN_LIBRARY_COMPILE_H

#include "codegen/cpu/EmitObject.h"
#include "codegen/host/EmitLibrary.h"

#include "mlir/IR/BuiltinOps.h"

namespace zero {

struct CompileOptions {
  /// The name of the library and the header. Empty: the name of the step.
  std::string name;
  CpuTargetOptions target;
  /// Without a value the library runs on a CPU only.
  std::optional<CudaTargetOptions> cuda;
};

/// The result of compiling a module with one zrt.program, before it is written.
struct CompiledStep {
  std::string name;
  std::string code; // object, assembly or LLVM IR, as the target says
  std::string header;
  /// What it was compiled from and to. The stages refer to the module.
  std::vector<StageProgram> stages;
  Tables tables; // of all stages
  std::optional<CudaCode> cuda;
  std::string cpu; // x86-64-v3 or x86-64-v4

  /// The text of the plan. |proof|, |validated|: see emitPlan.
  std::string getPlan(const ProofNote &proof,
                      llvm::json::Object validated) const;
};

/// Checks that |name| can be the name of a library and its header, and the
/// prefix of what the header defines. On an error |message| says why not.
mlir::LogicalResult checkLibraryName(llvm::StringRef name,
                                     std::string &message);

/// Compiles |scheduled|. Emits a diagnostic on an error.
mlir::FailureOr<CompiledStep> compileStep(mlir::ModuleOp scheduled,
                                          const CompileOptions &options);

/// Links the object of |step| to the shared library |path|. On an error
/// |message| says why, and the file at |path| is unusable.
mlir::LogicalResult writeLibrary(const CompiledStep &step, llvm::StringRef path,
                                 std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_LIBRARY_COMPILE_H
