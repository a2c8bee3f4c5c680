//===- Require.h - What verifiers of calls share ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_REQUIRE_H
#define ZERO_DIALECT_ZRT_REQUIRE_H

#include "dialect/zero/CountOf.h"
#include "dialect/zrt/ZrtDialect.h"

namespace zrt {

/// Looks |symbol| up as a T. Emits an error at |op| if it is not a T.
template <typename T>
mlir::FailureOr<T> require(mlir::SymbolTableCollection &symbols,
                           mlir::Operation *op,
                           mlir::FlatSymbolRefAttr symbol) {
  if (T found = lookup<T>(symbols, op, symbol))
    return found;
  return op->emitOpError() << "refers to " << symbol << ", which is no "
                           << T::getOperationName() << " of this program";
}

/// Checks that |symbol| has a slot |index|.
inline mlir::LogicalResult requireSlot(mlir::SymbolTableCollection &symbols,
                                       mlir::Operation *op,
                                       mlir::FlatSymbolRefAttr symbol,
                                       int64_t index) {
  mlir::FailureOr<SlotsOp> slots = require<SlotsOp>(symbols, op, symbol);
  if (failed(slots))
    return mlir::failure();
  if (index < 0 || index >= slots->size())
    return op->emitOpError()
           << "index " << index << " is out of range, " << symbol << " has "
           << zero::countOf(slots->size(), "scalar slot");
  return mlir::success();
}

/// Whether |names| are |axes|, in any order. Null has no names.
inline bool isSame(llvm::ArrayRef<mlir::StringAttr> axes,
                   mlir::ArrayAttr names) {
  return names && names.size() == axes.size() &&
         llvm::all_of(axes, [&](mlir::StringAttr axis) {
           return llvm::is_contained(names, axis);
         });
}

/// Checks that |buffer| keeps its memory across steps.
mlir::LogicalResult requireLasting(mlir::Operation *op, BufferOp buffer);

/// Checks that |buffer| has the rows of a bucket |name|, of type |rows|.
mlir::LogicalResult requireShape(mlir::Operation *op, BufferOp buffer,
                                 llvm::StringRef name, zero::ValueType rows);
mlir::LogicalResult requireShape(mlir::Operation *op, BufferOp buffer,
                                 zero::BucketOp bucket);

/// What transitions of a |program| demand of each other.
mlir::LogicalResult verifyProtocol(ProgramOp program);

/// scalar_state_c2, state_c4 and accumulator_c4.
mlir::LogicalResult verifyStates(ProgramOp program, zero::MeshOp mesh);

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_REQUIRE_H
