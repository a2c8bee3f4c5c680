//===- EmitHandlers.cpp - One zrt op, one call of the runtime -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/EmitHandlers.h"

#include "codegen/host/Calls.h"

using namespace mlir;
using namespace zero;

std::string zero::getHandlerName(zrt::HandlerOp handler,
                                 const GlobalBuilder &globals) {
  return ("zero.handler." + globals.getPrefix() + handler.getSymName()).str();
}

/// Emits a call of row |call| of the zero_rt_calls at |table|. Returns the
/// status.
static Value emitTableCall(OpBuilder &builder, Location loc, Value table,
                           Call call, ValueRange arguments) {
  MLIRContext *context = builder.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  Value row = builder.create<LLVM::GEPOp>(
      loc, pointer, builder.getI8Type(), table,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(getCallOffset(call))});
  SmallVector<Value> operands{builder.create<LLVM::LoadOp>(loc, pointer, row)};
  llvm::append_range(operands, arguments);
  return builder.create<LLVM::CallOp>(loc, getCallType(context, call), operands)
      .getResult();
}

namespace {
/// The arguments of the calls of one handler, as the calls describe them.
class Arguments {
public:
  Arguments(OpBuilder &builder, const Tables &tables, GlobalBuilder &globals,
            Value event)
      : builder(builder), tables(tables), globals(globals), event(event) {}

  /// Adds the arguments of |call|, the op with number |position| of its
  /// handler, to |values|.
  void add(zrt::RuntimeCall call, size_t position,
           SmallVectorImpl<Value> &values);

private:
  /// The rows of |buffers| as a constant of the library.
  Value getRows(Operation *call, size_t position, ArrayAttr buffers);

  OpBuilder &builder;
  const Tables &tables;
  GlobalBuilder &globals;
  Value event;
  SymbolTableCollection symbols;
};
} // namespace

Value Arguments::getRows(Operation *call, size_t position, ArrayAttr buffers) {
  SmallVector<int32_t> rows;
  for (auto buffer : buffers.getAsRange<FlatSymbolRefAttr>())
    rows.push_back(tables.getBuffer(buffer));
  auto handler = call->getParentOfType<zrt::HandlerOp>();
  std::string name = (handler.getSymName() + "." + Twine(position)).str();
  return builder.create<LLVM::AddressOfOp>(
      call->getLoc(), LLVM::LLVMPointerType::get(builder.getContext()),
      globals.indices(name, rows).symbol);
}

void Arguments::add(zrt::RuntimeCall call, size_t position,
                    SmallVectorImpl<Value> &values) {
  using Kind = zrt::CallArgument::Kind;
  auto addInteger = [&](Type type, int64_t value) {
    values.push_back(builder.create<LLVM::ConstantOp>(
        call.getLoc(), type, builder.getIntegerAttr(type, value)));
  };
  auto add32 = [&](int64_t value) { addInteger(builder.getI32Type(), value); };
  zrt::CallDescription description(call);
  for (const zrt::CallArgument &argument : description.getArguments())
    switch (argument.kind) {
    case Kind::buffer:
      add32(tables.getBuffer(argument.symbol));
      break;
    case Kind::buffers:
      values.push_back(getRows(call, position, argument.list));
      add32(argument.list.size());
      break;
    case Kind::bucket:
      add32(tables.getBucket(argument.symbol));
      break;
    case Kind::parameter:
      add32(tables.getParameter(argument.symbol));
      break;
    case Kind::kernel:
      add32(tables.getKernel(argument.symbol));
      break;
    case Kind::program:
      add32(tables.getScalars(argument.symbol));
      break;
    case Kind::segments: {
      int64_t table = tables.getTable(argument.symbol);
      const zero_rt_table_row &row = tables.tables[table];
      add32(table);
      addInteger(builder.getI64Type(),
                 row.count ? tables.segments[row.first + row.count - 1].end
                           : 0);
      break;
    }
    case Kind::axes:
      add32(tables.getAxes(argument, call, symbols));
      break;
    case Kind::slot:
      add32(argument.symbol ? tables.getSlot(argument.symbol) + argument.number
                            : -1);
      break;
    case Kind::slots:
      add32(tables.getSlot(argument.symbol));
      add32(zrt::lookup<zrt::SlotsOp>(symbols, call, argument.symbol).size());
      break;
    case Kind::event:
      add32(tables.getEvent(argument.symbol));
      break;
    case Kind::arrival:
      values.push_back(event);
      break;
    case Kind::stream:
    case Kind::role:
    case Kind::flag:
      add32(argument.number);
      break;
    }
}

void zero::emitHandler(zrt::HandlerOp handler, const Tables &tables,
                       GlobalBuilder &globals) {
  OpBuilder builder = globals.getBuilder();
  Location loc = handler.getLoc();
  MLIRContext *context = builder.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type status = builder.getI32Type();
  auto function = builder.create<LLVM::LLVMFuncOp>(
      loc, getHandlerName(handler, globals),
      LLVM::LLVMFunctionType::get(status, {pointer, pointer}),
      LLVM::Linkage::Internal);
  builder.setInsertionPointToEnd(function.addEntryBlock(builder));
  Value step = function.getArgument(0);
  Value table = builder.create<LLVM::LoadOp>(loc, pointer, step);
  Value zero = builder.create<LLVM::ConstantOp>(loc, status, 0);

  Block *leave = function.addBlock();
  Value result = leave->addArgument(status, loc);
  Arguments arguments(builder, tables, globals, function.getArgument(1));
  for (auto [position, each] : llvm::enumerate(handler.getBody().getOps())) {
    auto op = dyn_cast<zrt::RuntimeCall>(each);
    if (!op)
      continue;
    SmallVector<Value> values{step};
    arguments.add(op, position, values);
    Call call = getProgramCall(op->getName().stripDialect());
    Value code = emitTableCall(builder, op.getLoc(), table, call, values);
    Value ok = builder.create<LLVM::ICmpOp>(
        op.getLoc(), LLVM::ICmpPredicate::eq, code, zero);
    Block *next = function.addBlock();
    builder.create<LLVM::CondBrOp>(op.getLoc(), ok, next, ValueRange(), leave,
                                   ValueRange(code));
    builder.setInsertionPointToEnd(next);
  }
  builder.create<LLVM::BrOp>(loc, ValueRange(zero), leave);
  builder.setInsertionPointToEnd(leave);
  builder.create<LLVM::ReturnOp>(loc, result);
}
