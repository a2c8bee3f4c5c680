//===- ZrtDialect.h - The zrt dialect: buffers, kernels, handlers -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_ZRTDIALECT_H
#define ZERO_DIALECT_ZRT_ZRTDIALECT_H

#include "dialect/zero/ZeroDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/zrt/ZrtDialect.h.inc"
#include "dialect/zrt/ZrtEnums.h.inc"

namespace zrt {
class ProgramSymbols;
struct MemoryUse;
} // namespace zrt

#include "dialect/zrt/RuntimeCall.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/zrt/ZrtAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/zrt/ZrtOps.h.inc"

namespace zrt {

/// Looks |symbol| up in |op|'s program, then in the module around it.
mlir::Operation *lookup(mlir::SymbolTableCollection &symbols,
                        mlir::Operation *op, mlir::FlatSymbolRefAttr symbol);

template <typename T>
T lookup(mlir::SymbolTableCollection &symbols, mlir::Operation *op,
         mlir::FlatSymbolRefAttr symbol) {
  return llvm::dyn_cast_if_present<T>(lookup(symbols, op, symbol));
}

/// The type of the first buffer of |call|, or of its bucket, on the pipeline
/// stages that run the call; null if it has neither. All buffers of a call are
/// on the same pipeline stages.
zero::ValueType getPlace(mlir::SymbolTableCollection &symbols,
                         mlir::Operation *call);

/// Checks that the gradient of each parameter that is not frozen arrives in a
/// step or program of |module|, if it has one. Checks that its mesh can hold
/// the frozen parameters.
mlir::LogicalResult verifyParameters(
    mlir::ModuleOp module,
    llvm::function_ref<mlir::InFlightDiagnostic(mlir::Operation *)> emitError);

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_ZRTDIALECT_H
