//===- EmitObject.h - Machine code for a module -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CPU_EMITOBJECT_H
#define ZERO_CODEGEN_CPU_EMITOBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace zero {

enum class CpuOutput { object, assembly, llvmIR };

struct CpuTargetOptions {
  /// "x86-64-v3", "x86-64-v4" or "native". "native" is the higher of the two
  /// levels that this machine can run, with scheduling for its CPU.
  std::string cpu = "x86-64-v3";
  CpuOutput output = CpuOutput::object;
  /// False: the code is made fast, and is slow. For tests of what is no code of
  /// a library.
  bool optimize = true;
};

/// Lowers a copy of |module|, which has func, llvm, cf, scf, vector, arith and
/// math ops, and writes it to |os|. The lowering adds no calls of library
/// functions and no contractions.
mlir::LogicalResult emitCpuObject(mlir::ModuleOp module,
                                  const CpuTargetOptions &options,
                                  llvm::raw_pwrite_stream &os);

/// Checks that code can be generated for |cpu|. On an error |errorMessage| says
/// why not.
mlir::LogicalResult checkCpuName(llvm::StringRef cpu,
                                 std::string &errorMessage);

/// The features that code for |cpu| needs, as comma separated LLVM names. Empty
/// if checkCpuName fails.
std::string cpuFeatureList(llvm::StringRef cpu);

/// For "native", the level of this machine: "x86-64-v3" or "x86-64-v4", or
/// empty. Other names are returned unchanged.
std::string resolveCpuName(llvm::StringRef cpu);

} // namespace zero

#endif // ZERO_CODEGEN_CPU_EMITOBJECT_H
