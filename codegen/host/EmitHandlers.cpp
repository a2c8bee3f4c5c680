//===- EmitHandlers.cpp - One zrt op, one call of the runtime -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/EmitHandlers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;

std::string zero::getHandlerName(zrt::HandlerOp handler,
                                 const GlobalBuilder &globals) {
  return ("zero.handler." + globals.getPrefix() + handler.getSymName()).str();
}

Value zero::emitTableCall(OpBuilder &builder, Location loc, Value table,
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
/// The arguments of one call, after the step.
class Arguments {
public:
  Arguments(OpBuilder &builder, Location loc, const Tables &tables,
            GlobalBuilder &globals, Value event)
      : builder(builder), loc(loc), tables(tables), globals(globals),
        event(event) {}

  /// Fills |values| for |op| and returns the call that it is.
  Call visit(Operation *op);
  SmallVector<Value> values;

private:
  void add32(int64_t value) { addInteger(builder.getI32Type(), value); }
  void add64(int64_t value) { addInteger(builder.getI64Type(), value); }
  void addInteger(Type type, int64_t value) {
    values.push_back(builder.create<LLVM::ConstantOp>(
        loc, type, builder.getIntegerAttr(type, value)));
  }
  void addAddress(StringRef symbol) {
    values.push_back(builder.create<LLVM::AddressOfOp>(
        loc, LLVM::LLVMPointerType::get(builder.getContext()), symbol));
  }
  void addLaunch(zrt::LaunchOp op);

  OpBuilder &builder;
  Location loc;
  const Tables &tables;
  GlobalBuilder &globals;
  Value event;
};
} // namespace

void Arguments::addLaunch(zrt::LaunchOp op) {
  SmallVector<int32_t> buffers;
  for (auto buffer : op.getBuffers().getAsRange<FlatSymbolRefAttr>())
    buffers.push_back(tables.getBuffer(buffer));
  auto handler = op->getParentOfType<zrt::HandlerOp>();
  auto position = std::distance(op->getBlock()->begin(), Block::iterator(op));
  std::string name = (handler.getSymName() + "." + Twine(position)).str();
  std::string array = globals.indices(name, buffers).symbol;
  int64_t table = tables.getTable(op.getSegmentsAttr());
  const zero_rt_table_row &row = tables.tables[table];
  add32(tables.getKernel(op.getKernelAttr()));
  addAddress(array);
  add32(buffers.size());
  add32(table);
  add64(row.count ? tables.segments[row.first + row.count - 1].end : 0);
  add32(op.getOwnAttr() ? tables.getAxes(op.getOwnAttr()) : -1);
  add32(op.getSumAttr() ? tables.getSlot(op.getSumAttr()) +
                              static_cast<int64_t>(op.getSumIndex())
                        : -1);
  add32(static_cast<int64_t>(op.getStream()));
}

Call Arguments::visit(Operation *op) {
  if (auto allocate = dyn_cast<zrt::AllocateOp>(op)) {
    add32(tables.getBuffer(allocate.getBufferAttr()));
    return Call::allocate;
  }
  if (auto release = dyn_cast<zrt::ReleaseOp>(op)) {
    add32(tables.getBuffer(release.getBufferAttr()));
    return Call::release;
  }
  if (auto setRole = dyn_cast<zrt::SetRoleOp>(op)) {
    add32(tables.getBuffer(setRole.getBufferAttr()));
    add32(static_cast<int64_t>(setRole.getRole()));
    return Call::set_role;
  }
  return TypeSwitch<Operation *, Call>(op)
      .Case([&](zrt::PackOp pack) {
        values.push_back(event);
        add32(pack.getAccumulate());
        return Call::pack;
      })
      .Case([&](zrt::FillMissingOp fill) {
        add32(tables.getBucket(fill.getBucketAttr()));
        return Call::fill_missing;
      })
      .Case([&](zrt::LaunchOp launch) {
        addLaunch(launch);
        return Call::launch;
      })
      .Case([&](zrt::RunScalarsOp run) {
        add32(tables.getScalars(run.getProgramAttr()));
        return Call::run_scalars;
      })
      .Case([&](zrt::CountArrivalsOp count) {
        add32(tables.getSlot(count.getSlotsAttr()));
        add32(tables.getSlot(count.getSlotsAttr()) + 1);
        return Call::count_arrivals;
      })
      .Case([&](zrt::AllReduceOp reduce) {
        add32(tables.getBuffer(reduce.getBufferAttr()));
        add32(tables.getBuffer(reduce.getResultBuffer()));
        SymbolTableCollection symbols;
        add32(tables.getAxes(reduce.getAxes(), zrt::getPlace(symbols, op)));
        add32(static_cast<int64_t>(reduce.getStream()));
        return Call::all_reduce;
      })
      .Case([&](zrt::ReduceScatterOp scatter) {
        add32(tables.getBuffer(scatter.getSourceAttr()));
        add32(tables.getBuffer(scatter.getTargetAttr()));
        add32(tables.getAxes(scatter.getAxes()));
        add32(static_cast<int64_t>(scatter.getStream()));
        return Call::reduce_scatter;
      })
      .Case([&](zrt::ReduceScatterAddOp scatter) {
        add32(tables.getBuffer(scatter.getSourceAttr()));
        add32(tables.getBuffer(scatter.getTargetAttr()));
        add32(tables.getAxes(scatter.getAxes()));
        add32(static_cast<int64_t>(scatter.getStream()));
        return Call::reduce_scatter_add;
      })
      .Case([&](zrt::AllGatherOp gather) {
        add32(tables.getBuffer(gather.getBufferAttr()));
        add32(tables.getAxes(gather.getAxes()));
        add32(static_cast<int64_t>(gather.getStream()));
        return Call::all_gather;
      })
      .Case([&](zrt::CopyOp copy) {
        add32(tables.getBuffer(copy.getSourceAttr()));
        add32(tables.getBuffer(copy.getTargetAttr()));
        add32(static_cast<int64_t>(copy.getStream()));
        return Call::copy;
      })
      .Case([&](zrt::KeepOnRootOp keepOnRoot) {
        add32(tables.getBuffer(keepOnRoot.getBufferAttr()));
        add32(tables.getAxes(keepOnRoot.getAxes()));
        return Call::keep_on_root;
      })
      .Case([&](zrt::AllReduceScalarsOp reduce) {
        int64_t first = tables.getSlot(reduce.getSlotsAttr());
        add32(first);
        SymbolTableCollection symbols;
        add32(zrt::lookup<zrt::SlotsOp>(symbols, op, reduce.getSlotsAttr())
                  .size());
        add32(tables.getAxes(reduce.getAxes()));
        add32(static_cast<int64_t>(reduce.getStream()));
        return Call::all_reduce_scalars;
      })
      .Case([&](zrt::CountReplicatedOnceOp once) {
        add32(tables.getSlot(once.getSlotsAttr()) +
              static_cast<int64_t>(once.getIndex()));
        add32(tables.getAxes(once.getAxes()));
        return Call::count_replicated_once;
      })
      .Case([&](zrt::CommitOp commit) {
        add32(tables.getSlot(commit.getOutcomeAttr()));
        return Call::commit;
      })
      .Case([&](zrt::RecordOp record) {
        add32(tables.getEvent(record.getEventAttr()));
        return Call::record;
      })
      .Case([&](zrt::WaitOp wait) {
        add32(tables.getEvent(wait.getEventAttr()));
        add32(static_cast<int64_t>(wait.getStream()));
        return Call::wait;
      })
      .Case([&](zrt::WaitWritableOp) {
        values.push_back(event);
        return Call::wait_writable;
      })
      .Case([&](zrt::CopyScalarsOp) { return Call::copy_scalars; })
      .Default([](Operation *) -> Call {
        llvm_unreachable("handler_c1 admits only calls of the runtime");
      });
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
  for (Operation &op : handler.getBody().getOps()) {
    Arguments arguments(builder, op.getLoc(), tables, globals,
                        function.getArgument(1));
    arguments.values.push_back(step);
    Call call = arguments.visit(&op);
    Value code =
        emitTableCall(builder, op.getLoc(), table, call, arguments.values);
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
