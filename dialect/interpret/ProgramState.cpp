//===- ProgramState.cpp - Runs a zrt.program: parameters and state --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/StreamOrder.h"
#include "dialect/zero/CountOf.h"

using namespace mlir;
using namespace zero;

LogicalResult ProgramInterpreter::bindParameter(StringRef name,
                                                ArrayRef<double> full) {
  auto it = indices.find(name);
  if (it == indices.end())
    return program.getOp().emitError() << "has no parameter '" << name << "'";
  Parameter &parameter = parameters[it->second];
  ValueType type = parameter.op.getValueType();
  if (type.getNumElements() != static_cast<int64_t>(full.size()))
    return program.getOp().emitError()
           << "parameter '" << name << "' has "
           << countOf(type.getNumElements(), "element") << ", got "
           << full.size();
  const Format &storage = *getFormat(parameter.op.getDtype());
  SmallVector<FlatSymbolRefAttr> targets{parameter.table.getParametersAttr()};
  for (FlatSymbolRefAttr copy :
       {parameter.table.getMasterAttr(), parameter.table.getStagingAttr()})
    if (copy)
      targets.push_back(copy);
  for (FlatSymbolRefAttr target : targets) {
    const Buffer &buffer = program.getBuffer(target);
    PerRank &contents = program.write(target);
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      for (auto [i, position] : llvm::enumerate(ranks.getHeld(type, rank))) {
        int64_t e = parameter.range.begin + i;
        if (e >= buffer.held[rank].begin && e < buffer.held[rank].end)
          contents[rank][e - buffer.held[rank].begin] =
              calculator.convert(storage, *buffer.format,
                                 calculator.read(storage, full[position]));
      }
  }
  return success();
}

double ProgramInterpreter::getLossScale() {
  for (auto slots : program.getOp().getOps<zrt::SlotsOp>())
    if (slots.isLossScale())
      return program.readSlots(FlatSymbolRefAttr::get(slots), 0)[0].value;
  return 1;
}

std::vector<Number> ProgramInterpreter::getParameter(int64_t rank,
                                                     StringRef name) {
  auto it = indices.find(name);
  if (it == indices.end())
    return {};
  Parameter &parameter = parameters[it->second];
  if (order && failed(parameter.isSharded()
                          ? order->finish()
                          : order->waitForParameters(rank, parameter.table)))
    hasFailed = true;
  FlatSymbolRefAttr buffer = parameter.table.getParametersAttr();
  if (!program.getBuffer(buffer).isOn[rank])
    return {};
  if (parameter.isSharded())
    return joinSlices(rank, buffer, program.read(buffer))
        .slice(parameter.range)
        .elements;
  return program.read(buffer)[rank].slice(parameter.range).elements;
}

std::vector<Number> ProgramInterpreter::getState(StringRef role,
                                                 StringRef name) {
  if (order && failed(order->finish()))
    hasFailed = true;
  if (name.empty()) {
    for (auto op : program.getOp().getOps<zrt::ScalarStateOp>())
      if (op.getRole() == role)
        return {program.readSlots(op.getSlotsAttr(), 0)[op.getIndex()]};
    return {};
  }
  auto it = indices.find(name);
  if (it == indices.end())
    return {};
  Parameter &parameter = parameters[it->second];
  for (auto op : program.getOp().getOps<zrt::StateOp>()) {
    if (op.getRole() != role || op.getBucket() != parameter.bucket.getSymName())
      continue;
    const Buffer &buffer = program.getBuffer(op.getBufferAttr());
    const PerRank &contents = program.read(op.getBufferAttr());
    ValueType type = parameter.op.getValueType();
    std::vector<Number> joined(type.getNumElements());
    for (int64_t rank = 0; rank < ranks.size(); ++rank) {
      Range held = buffer.held[rank];
      std::vector<int64_t> positions = ranks.getHeld(type, rank);
      for (int64_t e = std::max(held.begin, parameter.range.begin);
           e < std::min(held.end, parameter.range.end); ++e)
        joined[positions[e - parameter.range.begin]] =
            contents[rank][e - held.begin];
    }
    return joined;
  }
  return {};
}
