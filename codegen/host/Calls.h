//===- Calls.h - The calls of handlers as LLVM functions --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_CALLS_H
#define ZERO_CODEGEN_HOST_CALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace zero {

/// A row of the runtime's table of calls that handlers call.
enum class Call {
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) NAME,
#include "zero_rt/calls.def"
};

/// The call of |name|.
Call getProgramCall(llvm::StringRef name);

/// The LLVM type of |call|, derived from its C prototype.
mlir::LLVM::LLVMFunctionType getCallType(mlir::MLIRContext *context, Call call);

/// The offset of |call| in zero_rt_calls, in bytes.
int64_t getCallOffset(Call call);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_CALLS_H
