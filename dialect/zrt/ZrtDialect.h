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
class CallDescription;
class ProgramSymbols;
struct MemoryUse;

/// What the ranks that meet in a collective give each other, of buffers or of
/// scalar slots. Each of the D ranks of a group has a slice of a row.
struct Exchange {
  mlir::FlatSymbolRefAttr source;
  mlir::FlatSymbolRefAttr target;
  /// Each rank gets the sum of its slice over all ranks.
  bool scatters = false;
  /// Each rank gets the slices of all ranks.
  bool gathers = false;
  /// The target keeps its contents, and the sum is added to them.
  bool accumulates = false;
};

/// Adds the memory that the arguments of |call| name to |uses|.
void addArgumentUses(mlir::Operation *call, const ProgramSymbols &symbols,
                     mlir::FlatSymbolRefAttr arriving,
                     llvm::SmallVectorImpl<MemoryUse> &uses);
} // namespace zrt

#include "dialect/zrt/RuntimeCall.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/zrt/ZrtAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/zrt/ZrtOps.h.inc"

namespace zrt {

/// What |symbol| names in |op|'s program, or in the module around it; or null.
mlir::Operation *lookupInProgram(mlir::SymbolTableCollection &symbols,
                                 mlir::Operation *op,
                                 mlir::FlatSymbolRefAttr symbol);
mlir::Operation *lookupInModule(mlir::SymbolTableCollection &symbols,
                                mlir::Operation *op,
                                mlir::FlatSymbolRefAttr symbol);

/// The op of type |T| that |symbol| names. A unit or a mesh of the module may
/// have the name of a handler: users choose it.
template <typename T>
T lookup(mlir::SymbolTableCollection &symbols, mlir::Operation *op,
         mlir::FlatSymbolRefAttr symbol) {
  if (auto found =
          llvm::dyn_cast_if_present<T>(lookupInProgram(symbols, op, symbol)))
    return found;
  return llvm::dyn_cast_if_present<T>(lookupInModule(symbols, op, symbol));
}

/// The type of the first buffer of a call, or of the bucket of a call or of a
/// table, on the pipeline stages that have it; null if |op| has neither. All
/// buffers of a call are on the same pipeline stages.
zero::ValueType getPlace(mlir::SymbolTableCollection &symbols,
                         mlir::Operation *op);

/// Checks that the gradient of each parameter that is not frozen arrives in a
/// step or program of |module|, if it has one. Checks that its mesh can hold
/// the frozen parameters.
mlir::LogicalResult verifyParameters(
    mlir::ModuleOp module,
    llvm::function_ref<mlir::InFlightDiagnostic(mlir::Operation *)> emitError);

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_ZRTDIALECT_H
