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

/// reduce_dtype_c1: |values| can travel as |reduceDtype|, which may be null.
mlir::LogicalResult verifyReduceDtype(mlir::Operation *op,
                                      mlir::ValueRange values,
                                      std::optional<mlir::Type> reduceDtype);

/// Checks that |values| are on every rank, replicated and unscaled. Non-linear
/// ops and updates accept only such values.
mlir::LogicalResult verifyFinal(mlir::Operation *op, mlir::ValueRange values);

/// Checks that a value of |type| is on all pipeline stages.
mlir::LogicalResult verifyEverywhere(mlir::Operation *op, ValueType type);

/// Checks that |values| are gradients with the declared normalization: not
/// partial, varying or `reduced`, and unscaled. They may be sharded.
mlir::LogicalResult verifyReduced(mlir::Operation *op, mlir::ValueRange values);

/// Checks that |values| are neither partial nor varying. Reason: a function of
/// an addend is not an addend of the function.
mlir::LogicalResult verifyNotPartial(mlir::Operation *op,
                                     mlir::ValueRange values);

/// Checks that names in |lists| are unique and not empty.
mlir::LogicalResult verifyNames(mlir::Operation *op,
                                llvm::ArrayRef<mlir::ArrayAttr> lists);

/// Checks that |number| is a finite f64. Messages call it |what| and its name.
mlir::LogicalResult verifyFiniteF64(mlir::Operation *op, llvm::StringRef what,
                                    mlir::NamedAttribute number);
/// Checks that |numbers|, which have |names|, are finite.
mlir::LogicalResult verifyFinite(mlir::Operation *op, llvm::StringRef what,
                                 mlir::ArrayAttr names,
                                 llvm::ArrayRef<double> numbers);

/// parameter_c4: checks that |parameter|, which |op| names, is not frozen.
mlir::LogicalResult verifyTrained(mlir::Operation *op, ParameterOp parameter);

/// Checks that |monomial| has symbols of steps on |mesh| only. Messages call it
/// |what|.
mlir::LogicalResult verifySymbols(mlir::Operation *op, llvm::StringRef what,
                                  ScaleAttr monomial, MeshOp mesh);
/// The same, and that they have a value in |step|.
mlir::LogicalResult verifySymbols(mlir::Operation *op, llvm::StringRef what,
                                  ScaleAttr monomial, StepOp step, MeshOp mesh);

/// backward_c10: checks that the norm of gradients with |scale| can be taken in
/// a step on |mesh|, for any number of backward passes.
mlir::LogicalResult verifySquare(mlir::Operation *op,
                                 llvm::ArrayRef<ScaleFactor> scale,
                                 MeshOp mesh);

/// activation_c3 and activation_c4, for the activations in the module of
/// |user|, a step or a program on |mesh|.
mlir::LogicalResult verifyActivations(mlir::Operation *user, MeshOp mesh);

/// step_c5: checks that |step| updates each parameter or bucket that arrives
/// exactly once, and no other.
mlir::LogicalResult
verifyEachGradientIsUpdatedOnce(StepOp step,
                                mlir::SymbolTableCollection &symbols);

} // namespace zero

#endif // ZERO_DIALECT_ZERO_RULES_H
