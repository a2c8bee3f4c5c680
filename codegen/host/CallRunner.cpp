//===- CallRunner.cpp - Makes the calls of handlers -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/CallRunner.h"

#include "codegen/host/Calls.h"

using namespace mlir;
using namespace zero;

static constexpr StringLiteral kRunner = "zero.make_calls";

namespace {
/// Builds the loop over the calls.
class Runner {
public:
  explicit Runner(GlobalBuilder &globals);
  void emit();

private:
  Value load(Type type, Value base, int64_t byte);
  Value getWord(int64_t index) { return load(i64, at, index * 8); }
  /// Makes |call|, whose number is the word |at|, in |block|.
  void emitCall(Call call, Block *block);
  /// |pointer| + |count| numbers of |type|.
  Value advance(Value pointer, Type type, Value count) {
    return builder.create<LLVM::GEPOp>(loc, this->pointer, type, pointer,
                                       ArrayRef<LLVM::GEPArg>{count});
  }
  Value constant(Type type, int64_t value) {
    return builder.create<LLVM::ConstantOp>(
        loc, type, builder.getIntegerAttr(type, value));
  }

  OpBuilder builder;
  Location loc;
  Type pointer, i32, i64;
  LLVM::LLVMFuncOp function;
  Value table; // the runtime's zero_rt_calls
  Block *next, *leave;
  Value at; // the words of the next call
};
} // namespace

Runner::Runner(GlobalBuilder &globals)
    : builder(globals.getBuilder()), loc(globals.getLoc()),
      pointer(LLVM::LLVMPointerType::get(builder.getContext())),
      i32(builder.getI32Type()), i64(builder.getI64Type()) {
  function = builder.create<LLVM::LLVMFuncOp>(
      loc, kRunner,
      LLVM::LLVMFunctionType::get(i32,
                                  {pointer, pointer, pointer, i64, pointer}),
      LLVM::Linkage::Internal);
}

Value Runner::load(Type type, Value base, int64_t byte) {
  Value place = builder.create<LLVM::GEPOp>(
      loc, pointer, builder.getI8Type(), base,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(byte)});
  return builder.create<LLVM::LoadOp>(loc, type, place);
}

void Runner::emitCall(Call call, Block *block) {
  builder.setInsertionPointToEnd(block);
  SmallVector<Value> operands{load(pointer, table, getCallOffset(call))};
  SmallVector<Type> types;
  int64_t word = 1;
  for (ArgumentForm form : getCallForms(call)) {
    switch (form) {
    case ArgumentForm::step:
      operands.push_back(function.getArgument(0));
      break;
    case ArgumentForm::event:
      operands.push_back(function.getArgument(1));
      break;
    case ArgumentForm::list:
      operands.push_back(
          advance(function.getArgument(4), i32, getWord(word++)));
      break;
    case ArgumentForm::number32:
      operands.push_back(
          builder.create<LLVM::TruncOp>(loc, i32, getWord(word++)));
      break;
    case ArgumentForm::number64:
      operands.push_back(getWord(word++));
      break;
    }
    types.push_back(operands.back().getType());
  }
  Value status = builder
                     .create<LLVM::CallOp>(
                         loc, LLVM::LLVMFunctionType::get(i32, types), operands)
                     .getResult();
  Value after = advance(at, i64, constant(i64, word));
  Value isOk = builder.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::eq,
                                            status, constant(i32, 0));
  builder.create<LLVM::CondBrOp>(loc, isOk, next, ValueRange(after), leave,
                                 ValueRange(status));
}

void Runner::emit() {
  Block *entry = function.addEntryBlock(builder);
  next = function.addBlock();
  at = next->addArgument(pointer, loc);
  Block *select = function.addBlock();
  SmallVector<Block *> blocks;
  for (size_t i = 0; i < kNumCalls; ++i)
    blocks.push_back(function.addBlock());
  Block *unknown = function.addBlock();
  leave = function.addBlock();
  leave->addArgument(i32, loc);

  builder.setInsertionPointToEnd(entry);
  table = load(pointer, function.getArgument(0), 0);
  Value end = advance(function.getArgument(2), i64, function.getArgument(3));
  Value ok = constant(i32, 0);
  builder.create<LLVM::BrOp>(loc, ValueRange(function.getArgument(2)), next);

  builder.setInsertionPointToEnd(next);
  Value isAtEnd =
      builder.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::eq, at, end);
  builder.create<LLVM::CondBrOp>(loc, isAtEnd, leave, ValueRange(ok), select,
                                 ValueRange());

  builder.setInsertionPointToEnd(select);
  SmallVector<APInt> numbers;
  for (size_t i = 0; i < kNumCalls; ++i)
    numbers.emplace_back(64, i);
  SmallVector<ValueRange> noOperands(blocks.size());
  builder.create<LLVM::SwitchOp>(loc, getWord(0), unknown, ValueRange(),
                                 ArrayRef<APInt>(numbers), blocks, noOperands);
  for (size_t i = 0; i < kNumCalls; ++i)
    emitCall(static_cast<Call>(i), blocks[i]);

  builder.setInsertionPointToEnd(unknown);
  builder.create<LLVM::UnreachableOp>(loc);
  builder.setInsertionPointToEnd(leave);
  builder.create<LLVM::ReturnOp>(loc, leave->getArgument(0));
}

Constant zero::emitCallRunner(GlobalBuilder &globals) {
  Runner(globals).emit();
  return {0, 0, kRunner.str()};
}
