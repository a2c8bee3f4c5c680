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
// What the host has for slots comes as arguments, and is written before the
// program begins: a launch or a memset for each would take as long as all else.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_EMITSCALARKERNEL_H
#define ZERO_CODEGEN_CUDA_EMITSCALARKERNEL_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// Slots that a launch may be given.
constexpr int64_t kMaxGivenSlots = 8;

/// Adds to |target| a CUDA kernel |name| that runs |scalars|, or nothing behind
/// what it is given if that is null. |getFirstSlot| says where a zrt.slots
/// begins. Emits a diagnostic where an op has no code.
mlir::LogicalResult emitScalarKernel(
    zrt::ScalarsOp scalars, mlir::ModuleOp target, llvm::StringRef name,
    llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_EMITSCALARKERNEL_H
