//===- ScalarBody.cpp - Scalar bodies of optimizers and kernels -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ScalarBody.h"

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace zero;

// The code of an instruction: |c| is the calculator, |i| the instruction, and
// |A| and so on are its operands.
#define EVALUATE(EXPRESSION)                                                   \
  [](const Calculator &c, const Instruction &i, const Number *r,               \
     Number *slots) -> Number { return EXPRESSION; }
#define A r[i.operands[0]]
#define B r[i.operands[1]]
#define C r[i.operands[2]]

bool ScalarBody::describe(Operation &op, FirstSlotFn getFirstSlot,
                          Instruction &instruction) {
  EvaluateFn &evaluate = instruction.evaluate;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      instruction.constant = number.getValueAsDouble();
    else if (constant.getType().isInteger(1))
      instruction.constant = cast<BoolAttr>(constant.getValue()).getValue();
    else
      return false;
    evaluate = EVALUATE((Number{i.constant, 0}));
  } else if (isa<arith::AddFOp>(op)) {
    evaluate = EVALUATE(c.add(*i.format, A, B));
  } else if (isa<arith::SubFOp>(op)) {
    evaluate = EVALUATE(c.sub(*i.format, A, B));
  } else if (isa<arith::MulFOp>(op)) {
    evaluate = EVALUATE(c.mul(*i.format, A, B));
  } else if (isa<arith::DivFOp>(op)) {
    evaluate = EVALUATE(c.div(*i.format, A, B));
  } else if (isa<math::FmaOp>(op)) {
    evaluate = EVALUATE(c.fma(*i.format, A, B, C));
  } else if (isa<math::SqrtOp>(op)) {
    evaluate = EVALUATE(c.sqrt(*i.format, A));
  } else if (isa<arith::NegFOp>(op)) {
    evaluate = EVALUATE(c.neg(A));
  } else if (isa<math::AbsFOp>(op)) {
    evaluate = EVALUATE(c.abs(A));
  } else if (isa<math::CopySignOp>(op)) {
    evaluate = EVALUATE(c.copySign(A, B));
  } else if (isa<arith::MinimumFOp>(op)) {
    evaluate = EVALUATE(c.minimum(A, B, /*ignoreNaN=*/false));
  } else if (isa<arith::MinNumFOp>(op)) {
    evaluate = EVALUATE(c.minimum(A, B, /*ignoreNaN=*/true));
  } else if (isa<arith::MaximumFOp>(op)) {
    evaluate = EVALUATE(c.maximum(A, B, /*ignoreNaN=*/false));
  } else if (isa<arith::MaxNumFOp>(op)) {
    evaluate = EVALUATE(c.maximum(A, B, /*ignoreNaN=*/true));
  } else if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    instruction.predicate = compare.getPredicate();
    evaluate = EVALUATE(c.compare(i.predicate, A, B));
  } else if (isa<arith::SelectOp>(op)) {
    evaluate = EVALUATE(c.select(A, B, C));
  } else if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    auto truncation = dyn_cast<arith::TruncFOp>(op);
    if (truncation && truncation.getRoundingmode())
      return false;
    evaluate = EVALUATE(c.convert(*i.from, *i.format, A));
  } else if (isa<arith::AndIOp>(op)) {
    evaluate =
        EVALUATE((Number{A.value * B.value, std::max(A.bound, B.bound)}));
  } else if (isa<arith::OrIOp>(op)) {
    evaluate = EVALUATE((Number{std::max(A.value, B.value), //
                                std::max(A.bound, B.bound)}));
  } else if (auto load = dyn_cast<zrt::LoadSlotOp>(op)) {
    instruction.slot = getFirstSlot(load.getSlotsAttr()) + load.getIndex();
    evaluate = EVALUATE(slots[*i.slot]);
  } else if (auto store = dyn_cast<zrt::StoreSlotOp>(op)) {
    instruction.slot = getFirstSlot(store.getSlotsAttr()) + store.getIndex();
    evaluate = EVALUATE(slots[*i.slot] = A);
  } else {
    return false;
  }
  return true;
}

#undef EVALUATE
#undef A
#undef B
#undef C

/// A float type with a format, or a condition.
static bool isSupported(Type type) {
  return getFormat(type) || type.isInteger(1);
}

LogicalResult ScalarBody::translate(Operation &op, FirstSlotFn getFirstSlot,
                                    llvm::DenseMap<Value, unsigned> &indices) {
  Instruction instruction;
  for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
    if (i < std::size(instruction.operands))
      instruction.operands[i] = indices.lookup(operand);
    if (!isSupported(operand.getType()))
      return op.emitOpError() << "type " << operand.getType()
                              << " is not supported by the interpreter";
  }
  for (Type type : op.getResultTypes())
    if (!isSupported(type))
      return op.emitOpError()
             << "type " << type << " is not supported by the interpreter";
  if (op.getNumOperands())
    instruction.from = getFormat(op.getOperand(0).getType());
  if (op.getNumResults())
    instruction.format = getFormat(op.getResult(0).getType());
  if (!describe(op, getFirstSlot, instruction))
    return op.emitOpError() << "is not supported by the interpreter";
  instruction.result = registers.size();
  registers.emplace_back();
  if (op.getNumResults())
    indices[op.getResult(0)] = instruction.result;
  if (instruction.slot)
    slots.push_back({*instruction.slot, isa<zrt::StoreSlotOp>(op)});
  instructions.push_back(instruction);
  return success();
}

FailureOr<ScalarBody> ScalarBody::create(Block &block,
                                         FirstSlotFn getFirstSlot) {
  ScalarBody body;
  llvm::DenseMap<Value, unsigned> indices;
  body.numArguments = block.getNumArguments();
  for (BlockArgument argument : block.getArguments()) {
    indices[argument] = body.registers.size();
    body.registers.emplace_back();
  }
  for (Operation &op : block.without_terminator())
    if (failed(body.translate(op, getFirstSlot, indices)))
      return failure();
  for (Value value : block.getTerminator()->getOperands())
    body.results.push_back(indices.lookup(value));
  return body;
}

void ScalarBody::run(const Calculator &calculator, ArrayRef<Number> arguments,
                     MutableArrayRef<Number> out,
                     MutableArrayRef<Number> slots) {
  llvm::copy(arguments, registers.begin());
  for (const Instruction &instruction : instructions)
    registers[instruction.result] = instruction.evaluate(
        calculator, instruction, registers.data(), slots.data());
  for (auto [number, index] : llvm::zip(out, results))
    number = registers[index];
}
