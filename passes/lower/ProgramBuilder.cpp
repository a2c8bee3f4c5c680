//===- ProgramBuilder.cpp - Adds symbols to a program ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/ProgramBuilder.h"

using namespace mlir;
using namespace zero;

ProgramBuilder::ProgramBuilder(zrt::ProgramOp program)
    : program(program),
      builder(OpBuilder::atBlockEnd(&program.getBody().front())),
      symbols(program), loc(program.getLoc()) {}

FlatSymbolRefAttr ProgramBuilder::append(Operation *op) {
  return FlatSymbolRefAttr::get(symbols.insert(op));
}

FlatSymbolRefAttr ProgramBuilder::slots(const Twine &name,
                                        ArrayRef<double> initial) {
  return append(builder.create<zrt::SlotsOp>(loc, name.str(), initial,
                                             /*over=*/ArrayAttr(),
                                             /*stands_for=*/StringAttr(),
                                             /*input_name=*/StringAttr(),
                                             /*hyper=*/StringAttr(),
                                             /*positive=*/false));
}

FlatSymbolRefAttr ProgramBuilder::lastingSlots(StringRef name,
                                               ArrayAttr counters,
                                               ArrayRef<double> initial,
                                               CounterRule rule) {
  StringAttr standsFor;
  if (isa_and_present<LossScaleOp>(rule.getOperation()))
    standsFor = builder.getStringAttr(kLossScale);
  FlatSymbolRefAttr slots = append(builder.create<zrt::SlotsOp>(
      loc, (name + ".counters").str(), initial, ArrayAttr(), standsFor,
      /*input_name=*/StringAttr(), /*hyper=*/StringAttr(), /*positive=*/false));
  for (auto [i, counter] : llvm::enumerate(counters.getAsRange<StringAttr>()))
    builder.create<zrt::ScalarStateOp>(
        loc, builder.getStringAttr(name + "." + counter.getValue()), slots,
        builder.getI64IntegerAttr(i),
        rule ? builder.getUnitAttr() : UnitAttr());
  return slots;
}

FlatSymbolRefAttr ProgramBuilder::input(BlockArgument argument, bool isTokens,
                                        StringAttr hyper, bool isPositive) {
  auto step = cast<StepOp>(argument.getOwner()->getParentOp());
  StringRef given = step.getArgumentName(argument);
  StringAttr name = given.empty() ? StringAttr() : builder.getStringAttr(given);
  auto type = cast<ValueType>(argument.getType());
  SmallVector<Attribute> over;
  llvm::append_range(over, type.getAxes(PlacementKind::Partial));
  return append(builder.create<zrt::SlotsOp>(
      loc, ("input." + Twine(argument.getArgNumber())).str(), 0.0,
      over.empty() ? ArrayAttr() : builder.getArrayAttr(over),
      isTokens ? builder.getStringAttr(kTokens) : StringAttr(), name, hyper,
      isPositive));
}

FlatSymbolRefAttr ProgramBuilder::buffer(const Twine &name, ValueType type,
                                         zrt::Role role) {
  return append(builder.create<zrt::BufferOp>(
      loc, builder.getStringAttr(name),
      TypeAttr::get(type.withSpace(MemorySpace::device)),
      zrt::RoleAttr::get(builder.getContext(), role),
      zrt::SpaceAttr::get(builder.getContext(), type.isOnHost()
                                                    ? zrt::Space::host
                                                    : zrt::Space::device),
      /*on_demand=*/UnitAttr(), /*fill=*/FloatAttr(),
      /*shares=*/FlatSymbolRefAttr()));
}

FlatSymbolRefAttr ProgramBuilder::segments(const Twine &name,
                                           ArrayRef<int64_t> ends,
                                           ArrayRef<int64_t> rows,
                                           ArrayRef<Attribute> scalars) {
  return append(builder.create<zrt::SegmentsOp>(loc, name.str(), ends, rows,
                                                builder.getArrayAttr(scalars)));
}

zrt::HandlerOp ProgramBuilder::handler(const Twine &name) {
  auto op = builder.create<zrt::HandlerOp>(loc, name.str());
  op.getBody().emplaceBlock();
  append(op);
  return op;
}

FlatSymbolRefAttr ProgramBuilder::sequence(const Twine &name,
                                           ArrayRef<Attribute> buckets,
                                           ArrayRef<Attribute> handlers) {
  return append(builder.create<zrt::SequenceOp>(
      loc, name.str(), builder.getArrayAttr(buckets),
      builder.getArrayAttr(handlers)));
}

zrt::ScalarsOp ProgramBuilder::scalarProgram(const Twine &name) {
  auto op = builder.create<zrt::ScalarsOp>(loc, name.str());
  op.getBody().emplaceBlock();
  append(op);
  return op;
}
