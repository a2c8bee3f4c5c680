//===- HandlerCalls.cpp - One zrt op, one call of the runtime -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/HandlerCalls.h"

#include "codegen/host/Calls.h"

using namespace mlir;
using namespace zero;

namespace {
/// Adds calls as numbers.
class CallWriter {
public:
  CallWriter(const Tables &tables, HandlerCalls &calls)
      : tables(tables), words(calls.words), lists(calls.lists) {}

  /// Adds |op| with its arguments, as it describes them.
  void add(zrt::RuntimeCall op);

private:
  /// Adds the numbers of |argument|.
  void add(const zrt::CallArgument &argument, Operation *op);
  void addBuffers(ArrayAttr buffers);

  const Tables &tables;
  std::vector<int64_t> &words;
  std::vector<int32_t> &lists;
  SymbolTableCollection symbols;
};
} // namespace

void CallWriter::add(zrt::RuntimeCall op) {
  Call call = getProgramCall(op->getName().stripDialect());
  [[maybe_unused]] size_t before = words.size();
  words.push_back(static_cast<int64_t>(call));
  zrt::CallDescription description(op);
  for (const zrt::CallArgument &argument : description.getArguments())
    add(argument, op);
  assert(llvm::count_if(getCallForms(call), isInTable) ==
             static_cast<ptrdiff_t>(words.size() - before - 1) &&
         "a description has the arguments of the prototype");
}

void CallWriter::addBuffers(ArrayAttr buffers) {
  words.push_back(lists.size());
  words.push_back(buffers.size());
  for (auto buffer : buffers.getAsRange<FlatSymbolRefAttr>())
    lists.push_back(static_cast<int32_t>(tables.getBuffer(buffer)));
}

void CallWriter::add(const zrt::CallArgument &argument, Operation *op) {
  using Kind = zrt::CallArgument::Kind;
  switch (argument.kind) {
  case Kind::buffer:
    words.push_back(tables.getBuffer(argument.symbol));
    break;
  case Kind::buffers:
    addBuffers(argument.list);
    break;
  case Kind::bucket:
    words.push_back(tables.getBucket(argument.symbol));
    break;
  case Kind::parameter:
    words.push_back(tables.getParameter(argument.symbol));
    break;
  case Kind::kernel:
    words.push_back(tables.getKernel(argument.symbol));
    break;
  case Kind::program:
    words.push_back(tables.getScalars(argument.symbol));
    break;
  case Kind::segments: {
    int64_t table = tables.getTable(argument.symbol);
    const zero_rt_table_row &row = tables.tables[table];
    words.push_back(table);
    words.push_back(row.count ? tables.segments[row.first + row.count - 1].end
                              : 0);
    break;
  }
  case Kind::axes:
    words.push_back(tables.getAxes(argument, op, symbols));
    break;
  case Kind::slot:
    words.push_back(argument.symbol
                        ? tables.getSlot(argument.symbol) + argument.number
                        : -1);
    break;
  case Kind::slots:
    words.push_back(tables.getSlot(argument.symbol));
    words.push_back(
        zrt::lookup<zrt::SlotsOp>(symbols, op, argument.symbol).size());
    break;
  case Kind::event:
    words.push_back(tables.getEvent(argument.symbol));
    break;
  case Kind::arrival:
    break; // an argument of the handler
  case Kind::stream:
  case Kind::role:
  case Kind::flag:
    words.push_back(argument.number);
    break;
  }
}

HandlerCalls zero::buildHandlerCalls(zrt::ProgramOp program,
                                     const Tables &tables) {
  HandlerCalls calls;
  CallWriter writer(tables, calls);
  for (auto handler : program.getOps<zrt::HandlerOp>()) {
    auto first = static_cast<int64_t>(calls.words.size());
    for (auto op : handler.getBody().getOps<zrt::RuntimeCall>())
      writer.add(op);
    calls.rows.push_back(
        {first, static_cast<int64_t>(calls.words.size()) - first});
  }
  return calls;
}
