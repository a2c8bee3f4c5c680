//===- EmitLibrary.h - Tables, handlers and header of a step ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_EMITLIBRARY_H
#define ZERO_CODEGEN_HOST_EMITLIBRARY_H

#include "codegen/cuda/EmitCuda.h"
#include "codegen/host/Stages.h"

#include "llvm/Support/JSON.h"

namespace zero {

struct LibraryOptions {
  /// CPU features that the runtime must find, comma separated.
  std::string cpuFeatures;
  /// Null: the library runs on a CPU only.
  const CudaCode *cuda = nullptr;
};

/// Appends to |target| the tables and one function per handler of each pipeline
/// stage, the zero_rt_library, and the exported pointer to it. |target| already
/// has a function for each kernel and scalar program, under its symbol name.
void emitLibrary(llvm::ArrayRef<StageProgram> stages,
                 const LibraryOptions &options, mlir::ModuleOp target);

/// The text of PREFIX.h.
std::string emitHeader(const Tables &tables, llvm::StringRef prefix);

/// The part of the plan on the proof.
struct ProofNote {
  bool isProved = false;
  /// What the proof assumes of the caller of the step.
  std::vector<std::string> preconditions;
};

/// The part of the plan without parameters: what a rank has, sends and runs. If
/// there are several pipeline stages, a list of that. It refers to texts of the
/// stages.
llvm::json::Object describePrograms(llvm::ArrayRef<StageProgram> stages);
/// The plan: parameters, buckets, bytes per rank by role, and collectives. If
/// there are several pipeline stages, the collectives of each one. |validated|
/// says what of the library was compared with the program. It refers to texts
/// of the arguments.
llvm::json::Object describePlan(llvm::ArrayRef<StageProgram> stages,
                                const Tables &whole, llvm::StringRef cpu,
                                const ProofNote &proof,
                                llvm::json::Object validated,
                                const CudaCode *cuda = nullptr);
/// The same as text.
std::string emitPlan(llvm::ArrayRef<StageProgram> stages, const Tables &whole,
                     llvm::StringRef cpu, const ProofNote &proof,
                     llvm::json::Object validated,
                     const CudaCode *cuda = nullptr);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_EMITLIBRARY_H
