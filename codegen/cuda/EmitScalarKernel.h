//===- EmitScalarKernel.h - CUDA code for a zrt.scalars ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scalar program NAME is a kernel of one thread:
//
//   void NAME(double *slots, int64_t num_given,
//             int64_t slot0, int64_t bits0, ... slot7, bits7)
//
// The arguments are values of the host for scalar slots, which the kernel
// writes before it runs the program. The reason: a launch or a memset for each
// value would take as long as the rest of the step.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_EMITSCALARKERNEL_H
#define ZERO_CODEGEN_CUDA_EMITSCALARKERNEL_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// The maximum number of values that a launch passes.
constexpr int64_t kMaxGivenSlots = 8;

/// Adds to |target| a CUDA kernel |name| that writes its values and then runs
/// |scalars|, which may be null. |getFirstSlot| returns the first scalar slot
/// of a zrt.slots. Emits a diagnostic if an op has no code.
mlir::LogicalResult emitScalarKernel(
    zrt::ScalarsOp scalars, mlir::ModuleOp target, llvm::StringRef name,
    llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITSCALARKERNEL_H
