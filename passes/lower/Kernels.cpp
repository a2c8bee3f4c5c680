//===- Kernels.cpp - Scalar bodies of a step's kernels --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero;
using zrt::Access;

static std::string mangle(StringRef name, ArrayRef<Type> types) {
  std::string text = name.str();
  llvm::raw_string_ostream os(text);
  for (Type type : types)
    os << "." << type;
  return text;
}

/// |value| as |type|, with one rounding at most.
static Value convert(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  // Neither of bf16 and f16 is wider than the other.
  if (value.getType().getIntOrFloatBitWidth() == type.getIntOrFloatBitWidth())
    value = builder.create<arith::ExtFOp>(loc, builder.getF32Type(), value);
  if (value.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return builder.create<arith::ExtFOp>(loc, type, value);
  return builder.create<arith::TruncFOp>(loc, type, value);
}

/// The type in which elements of |type| are added. CPUs have no addition of
/// bf16 or f16 that rounds once.
static Type getArithmeticType(Type type) {
  return type.getIntOrFloatBitWidth() < 32 ? Float32Type::get(type.getContext())
                                           : type;
}

FlatSymbolRefAttr ProgramBuilder::findKernel(StringRef name) {
  return symbols.lookup<zrt::KernelOp>(name)
             ? FlatSymbolRefAttr::get(builder.getContext(), name)
             : FlatSymbolRefAttr();
}

zrt::KernelOp ProgramBuilder::kernel(StringRef name, ArrayRef<Type> types,
                                     ArrayRef<Access> accesses, int64_t scalars,
                                     bool predicated, bool sums) {
  auto accessAttrs = llvm::map_to_vector(accesses, [&](Access access) {
    return cast<Attribute>(zrt::AccessAttr::get(builder.getContext(), access));
  });
  auto op = builder.create<zrt::KernelOp>(
      loc, name, builder.getTypeArrayAttr(types),
      builder.getArrayAttr(accessAttrs), scalars, predicated, sums);
  Block &block = op.getBody().emplaceBlock();
  for (auto [type, access] : llvm::zip_equal(types, accesses))
    if (access != Access::write)
      block.addArgument(type, loc);
  for (int64_t i = 0; i < scalars; ++i)
    block.addArgument(builder.getF64Type(), loc);
  append(op);
  return op;
}

FlatSymbolRefAttr ProgramBuilder::storeKernel(Type arrival, Type kept) {
  std::string name = mangle("store", {arrival, kept});
  if (FlatSymbolRefAttr known = findKernel(name))
    return known;
  zrt::KernelOp op =
      kernel(name, {arrival, kept}, {Access::read, Access::write},
             /*scalars=*/0, /*predicated=*/false, /*sums=*/false);
  Block &block = op.getBody().front();
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  body.create<zrt::YieldOp>(loc,
                            convert(body, loc, block.getArgument(0), kept));
  return FlatSymbolRefAttr::get(op);
}

FlatSymbolRefAttr ProgramBuilder::addKernel(Type arrival, Type kept) {
  std::string name = mangle("add", {arrival, kept});
  if (FlatSymbolRefAttr known = findKernel(name))
    return known;
  zrt::KernelOp op =
      kernel(name, {arrival, kept}, {Access::read, Access::update},
             /*scalars=*/0, /*predicated=*/false, /*sums=*/false);
  Block &block = op.getBody().front();
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  // The arriving gradient is converted to the kept type before it is added, so
  // a stored gradient and an added one have the same rounding.
  Type type = getArithmeticType(kept);
  Value gradient = convert(body, loc, block.getArgument(0), kept);
  Value sum = body.create<arith::AddFOp>(
      loc, convert(body, loc, block.getArgument(1), type),
      convert(body, loc, gradient, type));
  body.create<zrt::YieldOp>(loc, convert(body, loc, sum, kept));
  return FlatSymbolRefAttr::get(op);
}

FlatSymbolRefAttr ProgramBuilder::squaresKernel(Type type) {
  std::string name = mangle("sum_squares", {type});
  if (FlatSymbolRefAttr known = findKernel(name))
    return known;
  zrt::KernelOp op = kernel(name, {type}, {Access::read}, /*scalars=*/0,
                            /*predicated=*/false, /*sums=*/true);
  Block &block = op.getBody().front();
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  Value wide = convert(body, loc, block.getArgument(0), body.getF64Type());
  Value square = body.create<arith::MulFOp>(loc, wide, wide);
  body.create<zrt::YieldOp>(loc, square);
  return FlatSymbolRefAttr::get(op);
}

FlatSymbolRefAttr ProgramBuilder::updateKernel(OptimizerOp optimizer,
                                               Type gradient, Type storage,
                                               bool scaled) {
  Type master = optimizer.getMasterType();
  std::string name =
      mangle(("update." + optimizer.getSymName()).str(), {gradient, storage});
  if (!scaled)
    name += ".unscaled";
  if (FlatSymbolRefAttr known = findKernel(name))
    return known;

  SmallVector<Type> types{gradient, master};
  SmallVector<Access> accesses{Access::read, Access::update};
  for (Type state : optimizer.getStateTypes()) {
    types.push_back(state);
    accesses.push_back(Access::update);
  }
  if (storage != master) {
    types.push_back(storage);
    accesses.push_back(Access::write);
  }
  zrt::KernelOp op = kernel(name, types, accesses,
                            /*scalars=*/2 + optimizer.getNumScalars(),
                            /*predicated=*/true, /*sums=*/false);
  Block &block = op.getBody().front();
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  size_t numStates = optimizer.getStateNames().size();
  unsigned firstScalar = 2 + numStates;

  // A gradient that is wider than the master weights is multiplied in its own
  // type, and narrowed afterwards.
  bool isWider =
      gradient.getIntOrFloatBitWidth() > master.getIntOrFloatBitWidth();
  Type wide = isWider ? gradient : master;
  Value g = convert(body, loc, block.getArgument(0), wide);
  if (scaled)
    g = body.create<arith::MulFOp>(
        loc, g, convert(body, loc, block.getArgument(firstScalar + 1), wide));
  g = convert(body, loc, g, master);

  // The optimizer's body takes (gradient, master, state..., scalars...).
  Block &update = optimizer.getUpdate().front();
  IRMapping mapping;
  mapping.map(update.getArgument(0), g);
  for (size_t i = 1; i < firstScalar; ++i)
    mapping.map(update.getArgument(i), block.getArgument(i));
  for (size_t i = firstScalar; i < update.getNumArguments(); ++i)
    mapping.map(update.getArgument(i),
                convert(body, loc, block.getArgument(i + 2), master));
  for (Operation &inner : update.without_terminator())
    body.clone(inner, mapping);
  SmallVector<Value> yields = llvm::map_to_vector(
      update.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
  if (storage != master)
    yields.push_back(convert(body, loc, yields[0], storage));
  body.create<zrt::YieldOp>(loc, yields);
  return FlatSymbolRefAttr::get(op);
}
