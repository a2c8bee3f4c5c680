//===- Elements.cpp - The body of a kernel for some elements --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Elements.h"

#include "codegen/kernels/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace zero;
using zrt::Access;

LogicalResult zero::checkKernel(zrt::KernelOp kernel, StringRef place) {
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i)
    if (!isElementType(kernel.getArrayType(i)))
      return kernel.emitOpError()
             << "operand #" << i << " of type " << kernel.getArrayType(i)
             << " is not supported in " << place;
  return checkBody(kernel.getBody().front(), place);
}

Value zero::emitAddress(OpBuilder &builder, Location loc, Type element,
                        Value base, Value index) {
  return builder.create<LLVM::GEPOp>(loc, base.getType(), element, base,
                                     ValueRange{index});
}

Elements::Elements(OpBuilder &builder, zrt::KernelOp kernel,
                   const ElementOptions &options)
    : builder(builder), kernel(kernel), options(options),
      body(kernel.getBody().front()) {}

void Elements::emitUniforms(ArrayRef<Value> arrays, Value scalars) {
  this->arrays.assign(arrays.begin(), arrays.end());
  Location loc = kernel.getLoc();
  Type f64 = builder.getF64Type();
  unsigned firstScalar = body.getNumArguments() - kernel.getNumScalars();
  for (BlockArgument argument : body.getArguments().drop_front(firstScalar)) {
    Value slot = builder.create<arith::ConstantOp>(
        loc, builder.getI64IntegerAttr(argument.getArgNumber() - firstScalar));
    uniforms.map(argument,
                 builder.create<LLVM::LoadOp>(
                     loc, f64, emitAddress(builder, loc, f64, scalars, slot)));
  }

  auto isUniform = [&](Value value) { return uniforms.contains(value); };
  for (Operation &op : body.without_terminator()) {
    if (llvm::all_of(op.getOperands(), isUniform))
      emitBodyOp(builder, op, uniforms, /*width=*/1);
    else
      varyingOps.push_back(&op);
  }

  auto broadcast = [&](OperandRange values) {
    for (Value value : values) {
      if (!isUniform(value) || broadcasts.contains(value))
        continue;
      Value scalar = uniforms.lookup(value);
      Type type = widen(scalar.getType(), options.width);
      if (options.width != 1)
        scalar = builder.create<vector::BroadcastOp>(loc, type, scalar);
      broadcasts.map(value, scalar);
    }
  };
  for (Operation *op : varyingOps)
    broadcast(op->getOperands());
  broadcast(body.getTerminator()->getOperands());
}

Elements::Loaded Elements::emitLoads(Value index, int64_t width) {
  Loaded loaded = {width, width == 1 ? uniforms : broadcasts, {}};
  unsigned argument = 0;
  for (unsigned i = 0; i < kernel.getNumArrays(); ++i) {
    Type element = getStoredType(kernel.getArrayType(i));
    Value address =
        emitAddress(builder, kernel.getLoc(), element, arrays[i], index);
    unsigned alignment = element.getIntOrFloatBitWidth() / 8;
    if (options.alignedVectors)
      alignment *= width;
    if (kernel.getArrayAccess(i) != Access::read)
      loaded.written.push_back({alignment, address});
    if (kernel.getArrayAccess(i) != Access::write)
      loaded.mapping.map(body.getArgument(argument++),
                         builder.create<LLVM::LoadOp>(kernel.getLoc(),
                                                      widen(element, width),
                                                      address, alignment));
  }
  return loaded;
}

Value Elements::emitBody(Loaded &loaded) {
  for (Operation *op : varyingOps)
    emitBodyOp(builder, *op, loaded.mapping, loaded.width);
  OperandRange yields = body.getTerminator()->getOperands();
  for (auto [target, value] : llvm::zip(loaded.written, yields))
    builder.create<LLVM::StoreOp>(kernel.getLoc(), loaded.mapping.lookup(value),
                                  target.second, target.first);
  return kernel.getSums() ? loaded.mapping.lookup(yields.back()) : Value();
}
