//===- Body.h - Scalar bodies as scalar or vector code ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of a zrt.kernel or zrt.scalars body are cloned with wider types. Only
// conversions of 16-bit floats are rewritten. bf16 has no arithmetic, and is
// i16 everywhere. The reasons: LLVM scalarizes vectors of bfloat, and the
// conversion of the machine flushes subnormals and keeps NaN payloads
// (AVX-512), or does not exist.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_KERNELS_BODY_H
#define ZERO_CODEGEN_KERNELS_BODY_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace zero {

/// Emits an error at the first op of |body| that has no exact code without a
/// library call. |place| completes the message "is not supported in ".
mlir::LogicalResult checkBody(mlir::Block &body, llvm::StringRef place);

/// Whether arrays of |type| can be read and written.
bool isElementType(mlir::Type type);

/// The representation of |type| in memory and in registers: bf16 is i16.
mlir::Type getStoredType(mlir::Type type);

/// The type of |width| elements of |type|; |type| itself if |width| is 1.
mlir::Type widen(mlir::Type type, int64_t width);

/// Emits |op| of a checked body for |width| elements. |mapping| holds its
/// operands in that width and receives its results.
void emitBodyOp(mlir::OpBuilder &builder, mlir::Operation &op,
                mlir::IRMapping &mapping, int64_t width);

} // namespace zero

#endif // ZERO_CODEGEN_KERNELS_BODY_H
