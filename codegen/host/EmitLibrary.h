//===- EmitLibrary.h - Tables, handlers and the C ABI as code ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_EMITLIBRARY_H
#define ZERO_CODEGEN_HOST_EMITLIBRARY_H

#include "codegen/host/Tables.h"

namespace zero {

struct LibraryOptions {
  /// What the exported functions begin with.
  std::string prefix;
  /// CPU features that the runtime must find, comma separated.
  std::string cpuFeatures;
};

/// Appends to |target|, which already has a function for each kernel and scalar
/// program of |program| under its symbol name: the tables, one function per
/// handler, the zero_rt_library, and the exported PREFIX_* functions.
void emitLibrary(zrt::ProgramOp program, const Tables &tables,
                 const LibraryOptions &options, mlir::ModuleOp target);

/// The text of PREFIX.h.
std::string emitHeader(const Tables &tables, llvm::StringRef prefix);

/// What the plan says of the proof.
struct ProofNote {
  bool isProved = false;
  /// What the proof takes from whoever calls the step.
  std::vector<std::string> promises;
};

/// The plan as JSON: parameters, buckets, bytes per rank by role, collectives.
std::string emitPlan(zrt::ProgramOp program, const Tables &tables,
                     llvm::StringRef cpu, const ProofNote &proof);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_EMITLIBRARY_H
