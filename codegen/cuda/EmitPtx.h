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

/// Lowers a copy of |module|, of CUDA kernels, to PTX 7.0 for sm_80, which
/// every driver since CUDA 11 compiles for every GPU since A100. It divides and
/// takes roots correctly rounded, keeps subnormals, contracts nothing, and
/// calls nothing.
mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp module);

/// The architecture that it is for.
llvm::StringRef getPtxArch();

/// Where ptxas is: on the PATH, or in $CUDA_HOME/bin, where that is
/// /usr/local/cuda unless it is set. Empty if nowhere.
std::string findPtxas();

/// Assembles |ptx| with |ptxas| for |arch|, such as "sm_90". On an error
/// |message| says what ptxas did.
mlir::FailureOr<std::string> assemble(llvm::StringRef ptxas,
                                      llvm::StringRef ptx, llvm::StringRef arch,
                                      std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITPTX_H
