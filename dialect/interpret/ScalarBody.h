//===- ScalarBody.h - Scalar bodies of optimizers and kernels ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_SCALARBODY_H
#define ZERO_DIALECT_INTERPRET_SCALARBODY_H

#include "dialect/interpret/Calculator.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace zero {

/// A block of arith and math ops, translated once and run for each element.
class ScalarBody {
public:
  /// Gives the first scalar slot of a symbol.
  using FirstSlotFn = llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)>;

  /// Emits a diagnostic at an op that is not supported. Only bodies of
  /// zrt.scalars have scalar slots.
  static mlir::FailureOr<ScalarBody> create(mlir::Block &block,
                                            FirstSlotFn getFirstSlot = {});

  unsigned getNumArguments() const { return numArguments; }
  unsigned getNumResults() const { return results.size(); }

  /// Evaluates the body and writes the operands of its terminator to |out|.
  /// |arguments| are already rounded to their types.
  void run(const Calculator &calculator, llvm::ArrayRef<Number> arguments,
           llvm::MutableArrayRef<Number> out,
           llvm::MutableArrayRef<Number> slots = {});

  /// Each scalar slot that the body reads (false) or writes (true).
  llvm::ArrayRef<std::pair<int64_t, bool>> getSlots() const { return slots; }

private:
  struct Instruction;
  using EvaluateFn = Number (*)(const Calculator &, const Instruction &,
                                const Number *registers, Number *slots);

  struct Instruction {
    EvaluateFn evaluate = nullptr;
    const Format *format = nullptr; // of the result
    const Format *from = nullptr;   // of the first operand
    unsigned operands[3] = {0, 0, 0};
    unsigned result = 0;
    double constant = 0;
    std::optional<int64_t> slot;
    mlir::arith::CmpFPredicate predicate = {};
  };

  mlir::LogicalResult translate(mlir::Operation &op, FirstSlotFn getFirstSlot,
                                llvm::DenseMap<mlir::Value, unsigned> &indices);
  static bool describe(mlir::Operation &op, FirstSlotFn getFirstSlot,
                       Instruction &instruction);

  unsigned numArguments = 0;
  std::vector<Instruction> instructions;
  std::vector<unsigned> results;
  std::vector<std::pair<int64_t, bool>> slots;
  std::vector<Number> registers;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_SCALARBODY_H
