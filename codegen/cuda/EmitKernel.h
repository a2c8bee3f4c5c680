//===- EmitKernel.h - CUDA code for a zrt.kernel ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CUDA kernel NAME has these parameters:
//
//   void NAME(T0 *array0, ..., const double *slots,
//             const zero_rt_cuda_piece *pieces, int64_t num_pieces
//             [, double *partials, int32_t *arrivals, double *sum])
//
// Arrays are of the launched range, as on a CPU. A piece is at most 4096
// elements, with its scalars at slots + scalars. One that sums has the last
// three; it writes the sum to *sum, and its pieces but the last have 4096
// elements. What partials and arrivals are is in zero_rt/library.h.
//
// The grid has one dimension of as many blocks of kCudaThreads threads as
// pieces need.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_EMITKERNEL_H
#define ZERO_CODEGEN_CUDA_EMITKERNEL_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// Threads of a block.
constexpr int64_t kCudaThreads = 256;

/// Pieces that one block of |kernel| runs.
int64_t getPiecesPerBlock(zrt::KernelOp kernel);

/// Adds to |target| a CUDA kernel |name| that runs |kernel|; emits a diagnostic
/// where its body has no code. Gives the bits of the CPU's, but for
/// signs and payloads of NaNs.
///
/// Arrays need only the alignment of their elements, and are faster with 16
/// bytes. Two operands may be the same array, but must not overlap otherwise.
/// The sum of a predicated kernel that does nothing is 0.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp> emitCudaKernel(zrt::KernelOp kernel,
                                                       mlir::ModuleOp target,
                                                       llvm::StringRef name);

/// Makes a CUDA kernel of |function|, to be launched with |threads| threads a
/// block at most.
void markCudaKernel(mlir::LLVM::LLVMFuncOp function, int32_t threads);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITKERNEL_H
