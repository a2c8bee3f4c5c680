//===- AbiNumbers.h - What the ABI calls types and roles --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_ABINUMBERS_H
#define ZERO_CODEGEN_HOST_ABINUMBERS_H

#include "zero_rt/abi.h"

#include "mlir/IR/Types.h"

namespace zero {

/// The number of an element type in the ABI. Verifiers admit no other types.
zero_rt_dtype getDtype(mlir::Type type);

/// The type of a number of the ABI; null for another number.
mlir::Type getType(int64_t dtype, mlir::MLIRContext *context);

/// "bf16"; "unknown" for another number.
llvm::StringRef getDtypeName(int64_t dtype);

/// Bytes of one element.
int64_t getDtypeBytes(int64_t dtype);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_ABINUMBERS_H
