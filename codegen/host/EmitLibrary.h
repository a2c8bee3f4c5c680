//===- EmitLibrary.h - Tables, handlers and the C ABI as code ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_EMITLIBRARY_H
#define ZERO_CODEGEN_HOST_EMITLIBRARY_H

#include "codegen/cuda/EmitCuda.h"
#include "codegen/host/Stages.h"

namespace zero {

struct LibraryOptions {
  /// What the exported functions begin with.
  std::string prefix;
  /// CPU features that the runtime must find, comma separated.
  std::string cpuFeatures;
  /// Null: the library runs on a CPU only.
  const CudaCode *cuda = nullptr;
};

/// Appends to |target|, which already has a function for each kernel and scalar
/// program under its symbol name: the tables and one function per handler of
/// each stage, the zero_rt_library, and the exported PREFIX_* functions.
void emitLibrary(llvm::ArrayRef<StageProgram> stages,
                 const LibraryOptions &options, mlir::ModuleOp target);

/// The text of PREFIX.h.
std::string emitHeader(const Tables &tables, llvm::StringRef prefix);

/// What the plan says of the proof.
struct ProofNote {
  bool isProved = false;
  /// What the proof takes from whoever calls the step.
  std::vector<std::string> preconditions;
};

/// The plan as JSON: parameters, buckets, bytes per rank by role, collectives;
/// the latter for each stage, where there are several.
std::string emitPlan(llvm::ArrayRef<StageProgram> stages, const Tables &whole,
                     llvm::StringRef cpu, const ProofNote &proof,
                     const CudaCode *cuda = nullptr);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_EMITLIBRARY_H
