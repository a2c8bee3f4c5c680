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
// Arrays point to the launched range, as on a CPU. A piece has at most 4096
// elements, and its scalars are at slots + scalars. A reducing kernel has the
// last three parameters. It writes the sum to *sum, and each of its pieces but
// the last has 4096 elements. zero_rt/library.h describes partials and
// arrivals.
//
// The grid has one dimension, with enough blocks of kCudaThreads threads for
// all pieces.
//
// A batch runs a kernel for many operands in one launch:
//
//   void NAME(const zero_rt_cuda_batch_piece *pieces, int64_t num_pieces)
//
// Each piece has the addresses of its own operands. A kernel that has a batch
// has two operands, and neither a sum nor scalars.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_EMITKERNEL_H
#define ZERO_CODEGEN_CUDA_EMITKERNEL_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// The number of threads of a block.
constexpr int64_t kCudaThreads = 256;

/// The number of pieces that one block of |kernel| runs.
int64_t getPiecesPerBlock(zrt::KernelOp kernel);

/// Adds to |target| a CUDA kernel |name| that runs |kernel|. Emits a diagnostic
/// if the body has no code. The results have the bits of the CPU kernel, except
/// signs and payloads of NaNs.
///
/// Arrays need the alignment of their elements only; an alignment of 16 bytes
/// is faster. Two operands may be the same array, but must not overlap
/// otherwise. The sum of a predicated kernel whose predicate is false is 0.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp> emitCudaKernel(zrt::KernelOp kernel,
                                                       mlir::ModuleOp target,
                                                       llvm::StringRef name);

/// Adds to |target| a CUDA kernel |name| that runs |kernel| for a batch.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp> emitCudaBatch(zrt::KernelOp kernel,
                                                      mlir::ModuleOp target,
                                                      llvm::StringRef name);

/// Marks |function| as a CUDA kernel with at most |threads| threads per block.
/// If |blocksAtOnce| is not 0, ptxas may use as many registers as leave room
/// for that number of blocks on a multiprocessor.
void markCudaKernel(mlir::LLVM::LLVMFuncOp function, int32_t threads,
                    int32_t blocksAtOnce = 0);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITKERNEL_H
