//===- Dropper.h - Takes parts out of a step --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_REDUCE_DROPPER_H
#define ZERO_TOOLS_ZERO_REDUCE_DROPPER_H

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace zero {

/// A part that a step may do without: an op, or one operand of it.
struct Part {
  mlir::Operation *op;
  int64_t index = -1; // of a step: an argument; of a return: a value
};

/// The parts of |module|, in an order that depends on the module only; those
/// that take most with them come first.
llvm::SmallVector<Part> findParts(mlir::ModuleOp module);

/// Takes parts out of a module, each with all that means nothing without it:
/// the gradient of a parameter leaves its backward pass, sum, norm, clip and
/// update. What remains need not verify.
class Dropper {
public:
  explicit Dropper(mlir::ModuleOp module);

  void drop(const Part &part);
  /// Does what was decided; the module is valid IR from here on.
  void finish();

private:
  void dropSymbol(mlir::Operation *op);
  void dropSymbolUse(mlir::Operation *user, mlir::StringAttr symbol);
  void dropOp(mlir::Operation *op);
  void dropValue(mlir::Value value);
  void dropOperand(mlir::OpOperand &use);
  void dropArgument(StepOp step, int64_t index);
  void bypass(ClipOp clip);
  void dropBuffers(mlir::Operation *call);
  void dropSource(BackwardOp backward, mlir::StringAttr symbol);

  void filterSymbols(mlir::Operation *op);
  void rebuild(mlir::Operation *op);
  bool isDropped(mlir::Attribute symbol) const;
  void dropUnused();

  mlir::ModuleOp module;
  /// The ops that name a symbol.
  llvm::DenseMap<mlir::StringAttr, llvm::SetVector<mlir::Operation *>> users;
  llvm::DenseSet<mlir::StringAttr> symbols; // that are dropped
  llvm::SetVector<mlir::Operation *> erased;
  llvm::DenseSet<mlir::Value> values;
  llvm::MapVector<mlir::Operation *, llvm::BitVector> operands;
  llvm::SetVector<mlir::Operation *> filtered;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_REDUCE_DROPPER_H
