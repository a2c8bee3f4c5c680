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

/// The shape of the loop of a kernel. The defaults are measured. No option
/// changes a bit of a result.
struct CpuKernelOptions {
  /// Elements of one vector op, a power of two up to 32. An iteration of the
  /// main loop covers 32 elements.
  int64_t vectorElements = 8;
  /// The distance of prefetches, in elements; 0: no prefetches.
  int64_t prefetchDistance = 1024;
  /// The same for reducing kernels, which only read.
  int64_t reductionPrefetchDistance = 2048;
};

/// Adds to |target| a function |name| with the signature of zero_rt_kernel_fn
/// that runs |kernel|. Emits a diagnostic if the body has no CPU code.
///
/// Arrays need the alignment of their elements only. Two operands may be the
/// same array, but must not overlap otherwise. A predicated kernel whose
/// predicate is false writes nothing, partials included.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
emitCpuKernel(zrt::KernelOp kernel, mlir::ModuleOp target, llvm::StringRef name,
              const CpuKernelOptions &options = {});

} // namespace zero

#endif // ZERO_CODEGEN_CPU_EMITKERNEL_H
