//===- Rules.h - Checks shared by several ops -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_RULES_H
#define ZERO_DIALECT_ZERO_RULES_H

#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// !zero.value<f64>.
ValueType getScalarType(mlir::MLIRContext *context);

/// Whether memory may hold elements of |type|: f16, bf16, f32 or f64.
bool isStorageType(mlir::Type type);

/// Whether |wide| holds every number of |narrow|, both storage types.
bool holdsEveryNumber(mlir::Type wide, mlir::Type narrow);

/// reduce_dtype_c1: |values| can travel as |reduceDtype|, which may be null.
mlir::LogicalResult verifyReduceDtype(mlir::Operation *op,
                                      mlir::ValueRange values,
                                      std::optional<mlir::Type> reduceDtype);

/// Checks that |values| are on every rank, replicated and unscaled: what
/// non-linear ops and the update accept.
mlir::LogicalResult verifyFinal(mlir::Operation *op, mlir::ValueRange values);

/// Checks that a value of |type| is on every rank, and not on some pipeline
/// stages only.
mlir::LogicalResult verifyEverywhere(mlir::Operation *op, ValueType type);

/// Checks that |values| are gradients as they are meant: not partial, varying
/// or `reduced`, and unscaled. They may be sharded.
mlir::LogicalResult verifyReduced(mlir::Operation *op, mlir::ValueRange values);

/// Checks that |values| are neither partial nor varying: a function of a part
/// is no part of a function.
mlir::LogicalResult verifyNotPartial(mlir::Operation *op,
                                     mlir::ValueRange values);

/// parameter_c4: that |parameter|, which |op| names, is not frozen.
mlir::LogicalResult verifyTrained(mlir::Operation *op, ParameterOp parameter);

/// Checks that the symbols of |monomial|, which is called |what|, have a number
/// in |step|, which is on |mesh|.
mlir::LogicalResult verifySymbols(mlir::Operation *op, llvm::StringRef what,
                                  ScaleAttr monomial, StepOp step, MeshOp mesh);

/// activation_c3 and activation_c4: the activations next to |user|, a step or a
/// program on |mesh|, go between its stages.
mlir::LogicalResult verifyActivations(mlir::Operation *user, MeshOp mesh);

/// step_c5: each parameter or bucket that arrives in |step| is updated once,
/// and each that is updated arrives.
mlir::LogicalResult
verifyEachGradientIsUpdatedOnce(StepOp step,
                                mlir::SymbolTableCollection &symbols);

} // namespace zero

#endif // ZERO_DIALECT_ZERO_RULES_H
