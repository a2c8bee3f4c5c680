//===- EmitScalarKernel.cpp - CUDA code for a zrt.scalars -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmitScalarKernel.h"

#include "codegen/cuda/EmitKernel.h"
#include "codegen/cuda/WarpBuilder.h"
#include "codegen/kernels/Body.h"
#include "codegen/kernels/Elements.h"
#include "codegen/kernels/EmitScalars.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace zero;

namespace {
class ScalarKernelEmitter : WarpBuilder {
public:
  using WarpBuilder::WarpBuilder;

  void emit(zrt::ScalarsOp scalars, ModuleOp target, StringRef name,
            llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
    MLIRContext *context = builder.getContext();
    SmallVector<Type> types(2 + 2 * kMaxGivenSlots, builder.getI64Type());
    types[0] = LLVM::LLVMPointerType::get(context);
    builder.setInsertionPointToEnd(target.getBody());
    auto function = builder.create<LLVM::LLVMFuncOp>(
        loc, name,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
    markCudaKernel(function, /*threads=*/1);
    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToStart(entry);
    Value slots = entry->getArgument(0);
    for (int64_t i = 0; i < kMaxGivenSlots; ++i)
      emitWhere(isLess(i64(i), entry->getArgument(1)), [&] {
        Value address = emitAddress(builder, loc, builder.getI64Type(), slots,
                                    entry->getArgument(unsigned(2 + 2 * i)));
        builder.create<LLVM::StoreOp>(
            loc, entry->getArgument(unsigned(3 + 2 * i)), address);
      });
    if (scalars)
      emitScalarOps(builder, scalars, slots, getFirstSlot);
    builder.create<LLVM::ReturnOp>(loc, ValueRange());
  }
};
} // namespace

LogicalResult zero::emitScalarKernel(
    zrt::ScalarsOp scalars, ModuleOp target, StringRef name,
    llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  MLIRContext *context = target.getContext();
  context->loadDialect<arith::ArithDialect, LLVM::LLVMDialect,
                       math::MathDialect, scf::SCFDialect>();
  Location loc = scalars ? scalars.getLoc() : target.getLoc();
  if (scalars &&
      failed(checkBody(scalars.getBody().front(), "a scalar program")))
    return failure();
  ScalarKernelEmitter(context, loc).emit(scalars, target, name, getFirstSlot);
  return success();
}
