//===- EmitScalars.h - Code for a zrt.scalars -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_KERNELS_EMITSCALARS_H
#define ZERO_CODEGEN_KERNELS_EMITSCALARS_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// Adds to |target| a function |name| with the signature of zero_rt_scalar_fn
/// that runs |scalars|. |getFirstSlot| returns the first scalar slot of a
/// zrt.slots. Emits a diagnostic if an op has no code.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
emitScalars(zrt::ScalarsOp scalars, mlir::ModuleOp target, llvm::StringRef name,
            llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot);

/// Emits the same code at the insertion point of |builder|, with the scalar
/// slots at the address |slots|. All ops must have code: see checkBody.
void emitScalarOps(
    mlir::OpBuilder &builder, zrt::ScalarsOp scalars, mlir::Value slots,
    llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot);

} // namespace zero

#endif // ZERO_CODEGEN_KERNELS_EMITSCALARS_H
