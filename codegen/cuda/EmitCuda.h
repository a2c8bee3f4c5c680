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
  /// The architectures of the cubins, such as "sm_90". The library always has
  /// PTX.
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
  /// Keys are symbols of kernels and scalar programs.
  llvm::StringMap<CudaFunction> functions;
  /// The same kernels for a batch, of those that pack gradients.
  llvm::StringMap<CudaFunction> batches;
  /// Writes values to scalar slots, and runs no scalar program.
  CudaFunction giveSlots;
  std::vector<std::pair<RankSum, CudaFunction>> rankSums;
};

/// Emits code for all kernels and scalar programs of |program|. Emits a
/// diagnostic on an error. |getFirstSlot| returns the first scalar slot of a
/// zrt.slots.
mlir::FailureOr<CudaCode>
emitCuda(zrt::ProgramOp program,
         llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot,
         const CudaTargetOptions &options);

/// The name of |symbol| in PTX. Different symbols have different names.
std::string getCudaName(llvm::StringRef symbol);

/// Emits the MLIR of this code, before it is lowered.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitCudaModule(
    zrt::ProgramOp program,
    llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot,
    CudaCode &code);

/// Checks that code can be assembled for |arch|. On an error |message| says why
/// not.
mlir::LogicalResult checkCudaArch(llvm::StringRef arch, std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITCUDA_H
