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

namespace {
/// A function of a step and an event, which makes calls in order and returns
/// the status of the first that fails.
class CallsInOrder {
public:
  CallsInOrder(OpBuilder builder, Location loc, StringRef name);

  OpBuilder &getBuilder() { return builder; }
  Value getStep() { return function.getArgument(0); }
  Value getEvent() { return function.getArgument(1); }
  /// What is built from here on runs if |status|, of the last call, is ok.
  void goOnIfOk(Location loc, Value status);
  void finish();
  /// Keeps the function as one of its own.
  void forbidInlining() {
    function.setPassthroughAttr(builder.getStrArrayAttr({"noinline"}));
  }

private:
  OpBuilder builder;
  LLVM::LLVMFuncOp function;
  Value ok;
  Block *leave;
};
} // namespace

CallsInOrder::CallsInOrder(OpBuilder outer, Location loc, StringRef name)
    : builder(outer) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type status = builder.getI32Type();
  function = builder.create<LLVM::LLVMFuncOp>(
      loc, name, LLVM::LLVMFunctionType::get(status, {pointer, pointer}),
      LLVM::Linkage::Internal);
  builder.setInsertionPointToEnd(function.addEntryBlock(builder));
  ok = builder.create<LLVM::ConstantOp>(loc, status, 0);
  leave = function.addBlock();
  leave->addArgument(status, loc);
}

void CallsInOrder::goOnIfOk(Location loc, Value status) {
  Value isOk =
      builder.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::eq, status, ok);
  Block *next = function.addBlock();
  builder.create<LLVM::CondBrOp>(loc, isOk, next, ValueRange(), leave,
                                 ValueRange(status));
  builder.setInsertionPointToEnd(next);
}

void CallsInOrder::finish() {
  Location loc = function.getLoc();
  builder.create<LLVM::BrOp>(loc, ValueRange(ok), leave);
  builder.setInsertionPointToEnd(leave);
  builder.create<LLVM::ReturnOp>(loc, leave->getArgument(0));
}

/// A call of the runtime, and its number in its handler.
using NumberedCall = std::pair<size_t, zrt::RuntimeCall>;

static void emitCalls(ArrayRef<NumberedCall> calls, const Tables &tables,
                      GlobalBuilder &globals, CallsInOrder &out) {
  OpBuilder &builder = out.getBuilder();
  Value table = builder.create<LLVM::LoadOp>(
      out.getStep().getLoc(), LLVM::LLVMPointerType::get(builder.getContext()),
      out.getStep());
  Arguments arguments(builder, tables, globals, out.getEvent());
  for (auto [position, op] : calls) {
    SmallVector<Value> values{out.getStep()};
    arguments.add(op, position, values);
    Call call = getProgramCall(op->getName().stripDialect());
    out.goOnIfOk(op.getLoc(),
                 emitTableCall(builder, op.getLoc(), table, call, values));
  }
}

void zero::emitHandler(zrt::HandlerOp handler, const Tables &tables,
                       GlobalBuilder &globals) {
  // LLVM takes more than linear time for the blocks of a function. A step of
  // many buckets has many calls, so functions of its own make them.
  constexpr size_t kMostCalls = 512;
  SmallVector<NumberedCall> calls;
  for (auto [position, op] : llvm::enumerate(handler.getBody().getOps()))
    if (auto call = dyn_cast<zrt::RuntimeCall>(op))
      calls.push_back({position, call});
  Location loc = handler.getLoc();
  std::string name = getHandlerName(handler, globals);
  SmallVector<std::string> parts;
  ArrayRef<NumberedCall> left = calls;
  while (calls.size() > kMostCalls && !left.empty()) {
    parts.push_back((name + ".part" + Twine(parts.size())).str());
    CallsInOrder part(globals.getBuilder(), loc, parts.back());
    emitCalls(left.take_front(kMostCalls), tables, globals, part);
    part.finish();
    part.forbidInlining();
    left = left.drop_front(std::min(kMostCalls, left.size()));
  }
  CallsInOrder function(globals.getBuilder(), loc, name);
  if (parts.empty())
    emitCalls(calls, tables, globals, function);
  for (const std::string &part : parts) {
    OpBuilder &builder = function.getBuilder();
    auto call = builder.create<LLVM::CallOp>(
        loc, TypeRange(builder.getI32Type()), part,
        ValueRange{function.getStep(), function.getEvent()});
    function.goOnIfOk(loc, call.getResult());
  }
  function.finish();
}
