//===- EmitScalars.cpp - Code for a zrt.scalars ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/EmitScalars.h"

#include "codegen/kernels/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace zero;

void zero::emitScalarOps(
    OpBuilder &builder, zrt::ScalarsOp scalars, Value slots,
    function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  Block &body = scalars.getBody().front();
  Location loc = scalars.getLoc();
  Type f64 = builder.getF64Type();
  auto getAddress = [&](FlatSymbolRefAttr symbol, int64_t index) -> Value {
    Value slot = builder.create<arith::ConstantOp>(
        loc, builder.getI64IntegerAttr(getFirstSlot(symbol) + index));
    return builder.create<LLVM::GEPOp>(loc, slots.getType(), f64, slots,
                                       ValueRange{slot});
  };
  IRMapping mapping;
  for (Operation &op : body.without_terminator()) {
    if (auto load = dyn_cast<zrt::LoadSlotOp>(op))
      mapping.map(load.getValue(),
                  builder.create<LLVM::LoadOp>(
                      op.getLoc(), f64,
                      getAddress(load.getSlotsAttr(), load.getIndex())));
    else if (auto store = dyn_cast<zrt::StoreSlotOp>(op))
      builder.create<LLVM::StoreOp>(
          op.getLoc(), mapping.lookup(store.getValue()),
          getAddress(store.getSlotsAttr(), store.getIndex()));
    else
      emitBodyOp(builder, op, mapping, /*width=*/1);
  }
}

FailureOr<LLVM::LLVMFuncOp>
zero::emitScalars(zrt::ScalarsOp scalars, ModuleOp target, StringRef name,
                  function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  // Checks first, so that |target| stays unchanged if an op has no code.
  if (failed(checkBody(scalars.getBody().front(), "a scalar program")))
    return failure();
  MLIRContext *context = scalars.getContext();
  context->loadDialect<arith::ArithDialect, LLVM::LLVMDialect,
                       math::MathDialect>();
  Location loc = scalars.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(target.getBody());
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto function = builder.create<LLVM::LLVMFuncOp>(
      loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer}));
  // The time of instruction scheduling grows with the square of the length of a
  // block.
  constexpr size_t kLong = 500;
  if (scalars.getBody().front().getOperations().size() > kLong)
    function.setPassthroughAttr(
        builder.getStrArrayAttr({"noinline", "optnone"}));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  emitScalarOps(builder, scalars, entry->getArgument(0), getFirstSlot);
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  return function;
}
