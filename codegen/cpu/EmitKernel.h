//===- EmitKernel.h - CPU code for a zrt.kernel -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CPU_EMITKERNEL_H
#define ZERO_CODEGEN_CPU_EMITKERNEL_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// The shape of a kernel's loop. The numbers are measured; none changes a bit
/// of a result.
struct CpuKernelOptions {
  /// Elements of one vector op, a power of two up to 32; an iteration of the
  /// main loop covers 32.
  int64_t vectorElements = 8;
  /// How far ahead arrays are prefetched, in elements; 0: not at all.
  int64_t prefetchDistance = 1024;
  /// The same for kernels that only read, and sum.
  int64_t reductionPrefetchDistance = 2048;
};

/// Adds to |target| a function |name| with the signature of zero_rt_kernel_fn
/// that runs |kernel|; emits a diagnostic where its body has no CPU code.
///
/// Arrays need only the alignment of their elements. Two operands may be the
/// same array, but must not overlap otherwise. A predicated kernel that does
/// nothing leaves its partials alone, too.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
emitCpuKernel(zrt::KernelOp kernel, mlir::ModuleOp target, llvm::StringRef name,
              const CpuKernelOptions &options = {});

} // namespace zero

#endif // ZERO_CODEGEN_CPU_EMITKERNEL_H
