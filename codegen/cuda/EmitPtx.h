//===- EmitPtx.h - PTX and cubins for a module ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_EMITPTX_H
#define ZERO_CODEGEN_CUDA_EMITPTX_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace zero {

/// Lowers a copy of |module|, which has CUDA kernels, to PTX 7.0 for sm_80.
/// Every driver since CUDA 11 compiles this PTX for every GPU since A100.
/// Divisions and square roots are correctly rounded, subnormals are kept, and
/// there are no contractions and no calls.
mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp module);

/// The architecture of the PTX.
llvm::StringRef getPtxArch();

/// The path of ptxas: on the PATH, or in $CUDA_HOME/bin, with the default
/// /usr/local/cuda. Empty if there is no ptxas.
std::string findPtxas();

/// Assembles |ptx| with |ptxas| for |arch|, such as "sm_90". On an error
/// |message| is the error of ptxas.
mlir::FailureOr<std::string> assemble(llvm::StringRef ptxas,
                                      llvm::StringRef ptx, llvm::StringRef arch,
                                      std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITPTX_H
