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
  /// What the library's functions begin with; the step's name if empty.
  std::string name;
  CpuTargetOptions target;
  /// None: the library runs on a CPU only.
  std::optional<CudaTargetOptions> cuda;
  ProofNote proof;
};

/// What a module with one zrt.program compiles to, before it is written.
struct CompiledStep {
  std::string name;
  std::string code; // object, assembly or LLVM IR, as the target says
  std::string header;
  std::string plan;
  std::string ptx; // empty without a CUDA target
  std::vector<std::string> exportedSymbols;
};

/// Whether |name| can be that of a library, its header and its functions; else
/// |message| says why not.
mlir::LogicalResult checkLibraryName(llvm::StringRef name,
                                     std::string &message);

/// Compiles |scheduled|; emits a diagnostic where that is not possible.
mlir::FailureOr<CompiledStep> compileStep(mlir::ModuleOp scheduled,
                                          const CompileOptions &options);

/// Links |step|'s object to the shared library |path|. On an error |message|
/// says why, and what is left at |path| is of no use.
mlir::LogicalResult writeLibrary(const CompiledStep &step, llvm::StringRef path,
                                 std::string &message);

/// Writes |text| to |path|. On an error nothing is left there, and |message|
/// names the file.
mlir::LogicalResult writeFile(llvm::StringRef path, llvm::StringRef text,
                              std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_LIBRARY_COMPILE_H
