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

FailureOr<LLVM::LLVMFuncOp>
zero::emitScalars(zrt::ScalarsOp scalars, ModuleOp target, StringRef name,
                  function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  Block &body = scalars.getBody().front();
  if (failed(checkBody(body, "a scalar program")))
    return failure();

  MLIRContext *context = scalars.getContext();
  context->loadDialect<arith::ArithDialect, LLVM::LLVMDialect,
                       math::MathDialect>();
  Location loc = scalars.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(target.getBody());
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type f64 = builder.getF64Type();
  auto function = builder.create<LLVM::LLVMFuncOp>(
      loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer}));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);

  auto getAddress = [&](FlatSymbolRefAttr slots, int64_t index) -> Value {
    Value slot = builder.create<arith::ConstantOp>(
        loc, builder.getI64IntegerAttr(getFirstSlot(slots) + index));
    return builder.create<LLVM::GEPOp>(loc, pointer, f64, entry->getArgument(0),
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
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  return function;
}
