//===- EmitCuda.h - The CUDA code of a program ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_EMITCUDA_H
#define ZERO_CODEGEN_CUDA_EMITCUDA_H

#include "codegen/cuda/EmitPtx.h"
#include "codegen/cuda/RankSums.h"
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/ADT/StringMap.h"

namespace zero {

struct CudaTargetOptions {
  /// What cubins are assembled for, such as "sm_90"; PTX is there in any case.
  std::vector<std::string> archs;
};

/// A row of zero_rt_cuda_function.
struct CudaFunction {
  std::string name;
  int64_t piecesPerBlock = 0;
};

struct CudaCode {
  std::string ptx;
  std::vector<std::pair<std::string, std::string>> cubins; // arch and data
  /// By the symbol of a kernel or scalar program.
  llvm::StringMap<CudaFunction> functions;
  /// Runs no scalar program, and writes what it is given.
  CudaFunction giveSlots;
  std::vector<std::pair<RankSum, CudaFunction>> rankSums;
};

/// Code for all kernels and scalar programs of |program|; emits a diagnostic
/// where that is not possible. |getFirstSlot| says where a zrt.slots begins.
mlir::FailureOr<CudaCode>
emitCuda(zrt::ProgramOp program,
         llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot,
         const CudaTargetOptions &options);

/// |symbol| as PTX can spell it; another one for another symbol.
std::string getCudaName(llvm::StringRef symbol);

/// The MLIR of that code, before it is lowered.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitCudaModule(
    zrt::ProgramOp program,
    llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot,
    CudaCode &code);

/// Whether |arch| can be assembled for; else |message| says why not.
mlir::LogicalResult checkCudaArch(llvm::StringRef arch, std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITCUDA_H
